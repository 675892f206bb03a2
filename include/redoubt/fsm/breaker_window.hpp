// SPDX-License-Identifier: BSL-1.0
//
// How many of the last calls failed or were slow, over a rolling window of time: ten buckets, of which the
// oldest is forgotten as a new one begins.
#pragma once

#include <array>
#include <cstdint>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// What a window holds.
struct breaker_counts {
  std::uint64_t calls = 0;   ///< Ended with success or failure.
  std::uint64_t failed = 0;  ///< Of these: failures.
  std::uint64_t slow = 0;    ///< Of these: took longer than they should, failed or not.
};

/// Rolling counts. Copyable value. `add_good()` may be called by any number of threads beside everything
/// else; the rest is for one thread at a time.
class breaker_window {
 public:
  static constexpr std::uint32_t buckets = 10;

  breaker_window() noexcept = default;
  breaker_window(breaker_window const& other) noexcept { *this = other; }
  breaker_window& operator=(breaker_window const& other) noexcept;

  /// Forgets everything; counts over the last `length` from now on (at least `buckets` nanoseconds).
  void reset(duration length) noexcept;

  /// A call that ended well and in time. Lock-free. A call that meets the change of a bucket may be counted
  /// in the next one.
  void add_good(time_point now) noexcept;

  /// Any other call. `failed`, `slow`: what it was.
  void add_bad(time_point now, bool failed, bool slow) noexcept;

  /// The counts of the window that ends at `now`.
  [[nodiscard]] breaker_counts count(time_point now) const noexcept;

 private:
  struct bucket {
    std::uint64_t good = 0;  // the tick in the upper half, the count in the lower: changed together
    std::uint32_t tick = 0;
    std::uint32_t other = 0;
    std::uint32_t failed = 0;
    std::uint32_t slow = 0;
  };

  [[nodiscard]] std::uint32_t tick(time_point now) const noexcept;

  std::uint64_t buckets_per_ns_ =
      0;  // times 2^64: a division on every call would cost as much as all the rest
  std::array<bucket, buckets> buckets_{};
};

}  // namespace redoubt
