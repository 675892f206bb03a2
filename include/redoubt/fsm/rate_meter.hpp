// SPDX-License-Identifier: BSL-1.0
//
// When the next request may be made so that a quota is never exceeded: a token bucket, kept as the one moment
// at which it would be full again (the generic cell rate algorithm, ITU-T I.371). One number, so that a guard
// can hold it in an atomic.
#pragma once

#include <cstdint>

#include <redoubt/core/required.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// A quota: at most `limit` in any stretch of time as long as `per`.
struct rate_options {
  /// How many in `per`. No default: the quota is somebody else's. Range 1 .. 1'000'000'000.
  required<std::uint32_t> limit;
  /// The stretch of time. No default. Range 1 ms .. 24 h.
  required<duration> per;
  /// How many of them may be made at once after a quiet time; the others are spread evenly, one each
  /// `per / (limit - burst + 1)`. A larger burst therefore means a lower steady rate. Default 1: evenly
  /// spread from the start, at the full rate. Range 1 .. `limit`.
  std::uint32_t burst = 1;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// The rule of a quota. Sans-io: it keeps no state of its own, the caller hands it in and stores what comes
/// back. Immutable, safe to share.
class rate_meter {
 public:
  /// The state of a bucket that nothing was taken from.
  static constexpr time_point full = time_point::min();

  /// What became of a request.
  struct answer {
    bool granted = false;
    /// When it may be made, if granted; otherwise the earliest moment at which it could have been.
    time_point at{};
    /// The state after it; the same as before when it was not granted.
    time_point state{};
  };

  /// Throws `option_error` when the options are out of range.
  explicit rate_meter(rate_options const& options);

  /// A request at `now` that can be held back until `latest` at most. Granted in the order of the calls.
  [[nodiscard]] answer take(time_point state, time_point now, time_point latest) const noexcept;

  /// The state in which nothing is granted before `until`, and no burst after it.
  [[nodiscard]] time_point held_off(time_point state, time_point until) const noexcept;

  /// Between two requests at the steady rate; rounded up, so that rounding never exceeds the quota.
  [[nodiscard]] duration interval() const noexcept { return interval_; }

 private:
  duration interval_;
  duration slack_;  // how far the requests of a burst may run ahead of the steady rate
};

}  // namespace redoubt
