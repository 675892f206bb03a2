// SPDX-License-Identifier: BSL-1.0
//
// Words for time. Everything in redoubt counts on the steady clock; a wall clock step never lengthens or
// skips a wait. This header reads no clock: `now` always comes in as an argument (async/clock.hpp is where it
// is read).
#pragma once

#include <chrono>

namespace redoubt {

/// A length of time. All options accept any chrono duration and are kept in nanoseconds.
using duration = std::chrono::nanoseconds;

/// A point on the steady clock.
using time_point = std::chrono::steady_clock::time_point;

/// The moment by which something must have ended: absolute, so it can be handed down through any number of
/// layers without being restarted at one of them. There is no conversion from a duration for that reason; use
/// `deadline_after(executor, 150ms)` of async/clock.hpp once, where the request begins.
///
/// A default-constructed deadline adds no limit of its own; the policy's or client's own limits still hold,
/// so it never means "wait for ever". Value type, safe to copy between threads.
class deadline {
 public:
  constexpr deadline() noexcept = default;

  /// The deadline at `when`.
  constexpr explicit deadline(time_point when) noexcept : at_(when) {}

  /// The absolute time; `time_point::max()` for a default-constructed deadline.
  [[nodiscard]] constexpr time_point at() const noexcept { return at_; }

  /// False for a default-constructed deadline.
  [[nodiscard]] constexpr bool is_set() const noexcept { return at_ != time_point::max(); }

  /// What is left at `now`; zero, never negative, once it has passed.
  [[nodiscard]] constexpr duration left(time_point now) const noexcept {
    return at_ <= now ? duration::zero() : std::chrono::duration_cast<duration>(at_ - now);
  }

  /// True when `now` is at or after the deadline.
  [[nodiscard]] constexpr bool passed(time_point now) const noexcept { return at_ <= now; }

  /// The earlier of two deadlines.
  [[nodiscard]] friend constexpr deadline earlier(deadline a, deadline b) noexcept {
    return a.at_ < b.at_ ? a : b;
  }

  friend constexpr auto operator<=>(deadline, deadline) noexcept = default;

 private:
  time_point at_ = time_point::max();
};

/// `t + d` without overflow: a huge duration gives `time_point::max()`, a hugely negative one
/// `time_point::min()`.
[[nodiscard]] constexpr time_point saturating_add(time_point t, duration d) noexcept {
  if (d > duration::zero() && t > time_point::max() - d) return time_point::max();
  if (d < duration::zero() && t < time_point::min() - d) return time_point::min();
  return t + d;
}

}  // namespace redoubt
