// SPDX-License-Identifier: BSL-1.0
//
// How many of the last calls failed or were slow, over a rolling window of time: ten buckets, of which the
// oldest is forgotten as a new one begins.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <redoubt/core/striped_counter.hpp>
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

  /// Forgets everything; counts over the last `length` from now on (at least `buckets` nanoseconds). How many
  /// good calls it had held.
  [[nodiscard]] std::uint64_t reset(duration length) noexcept;

  /// A call that ended well and in time. Lock-free. A call that meets the change of a bucket may be counted
  /// in the next one. How many good calls the window has let go for it, or did not take.
  [[nodiscard]] std::uint64_t add_good(time_point now) noexcept;

  /// The good calls it has taken and not let go, however old. So their total needs no counter of its own,
  /// which would double what a good call costs.
  [[nodiscard]] std::uint64_t held() const noexcept;

  /// Any other call. `failed`, `slow`: what it was.
  void add_bad(time_point now, bool failed, bool slow) noexcept;

  /// The counts of the window that ends at `now`.
  [[nodiscard]] breaker_counts count(time_point now) const noexcept;

 private:
  struct bucket {
    std::uint32_t tick = 0;
    std::uint32_t other = 0;
    std::uint32_t failed = 0;
    std::uint32_t slow = 0;
  };

  using atomic_word = std::atomic_ref<std::uint64_t>;
  static constexpr std::uint64_t count_mask = 0xffff'ffff;
  static constexpr std::uint32_t most_late = 1 << 16;  // ticks, of a call behind the others

  static std::uint32_t tick_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }
  /// True when `tick` is `at` or later. Ticks wrap, after 50 days in the shortest window: what seems to be
  /// far ahead is what nobody has counted into for long.
  static bool reached(std::uint32_t tick, std::uint32_t at) noexcept { return at - tick - 1 >= most_late; }
  /// A word read while others write it.
  static std::uint64_t read(std::uint64_t const& word) noexcept {
    return atomic_word(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t tick(time_point now) const noexcept {
    __extension__ using wide = unsigned __int128;
    auto const since = static_cast<std::uint64_t>(now.time_since_epoch().count());
    return static_cast<std::uint32_t>(static_cast<wide>(since) * read(buckets_per_ns_) >> 64);
  }

  // Good calls: the tick in the upper half, the count in the lower, changed together. A row for each stripe
  // of threads: the words of one bucket are more than a cache line apart.
  using good_row = std::array<std::uint64_t, buckets>;
  static_assert(sizeof(good_row) >= detail::cache_line);

  // Times 2^64: a division on every call would cost as much as all the rest.
  std::uint64_t buckets_per_ns_ = 0;
  std::array<bucket, buckets> buckets_{};
  std::array<good_row, detail::stripes> good_{};
};

inline std::uint64_t breaker_window::add_good(time_point now) noexcept {
  auto const t = tick(now);
  atomic_word good(good_[detail::thread_stripe::index()][t % buckets]);
  auto seen = good.load(std::memory_order_relaxed);
  for (;;) {
    if (tick_of(seen) == t) {
      good.fetch_add(1, std::memory_order_relaxed);
      return 0;
    }
    if (!reached(t, tick_of(seen))) return 1;  // a whole window late
    auto const first = std::uint64_t{t} << 32 | 1;
    if (good.compare_exchange_weak(seen, first, std::memory_order_relaxed)) return seen & count_mask;
  }
}

}  // namespace redoubt
