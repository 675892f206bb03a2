// SPDX-License-Identifier: BSL-1.0
//
// A number that many threads raise all the time and that somebody reads now and then. On one cache line the
// threads would wait for each other, however little they have to do with each other otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace redoubt::detail {

/// How many cache lines a striped number lies on.
inline constexpr std::size_t stripes = 8;
/// What is so many bytes apart is on different lines. Not an alignment on purpose: a local variable of a
/// coroutine does not get more than that of `new`.
inline constexpr std::size_t cache_line = 64;

/// The stripe of the calling thread: threads are dealt out in turn. Two threads may have the same.
class thread_stripe {
 public:
  [[nodiscard]] static std::size_t index() noexcept {
    if (own_ == 0) own_ = 1 + next_.fetch_add(1, std::memory_order_relaxed) % stripes;
    return own_ - 1;
  }

 private:
  static inline constinit thread_local std::size_t own_ = 0;  // 0: none yet
  static inline constinit std::atomic<std::size_t> next_{0};
};

/// A monotonic count. `add()` and `read()` by any thread; copyable while nobody adds.
class striped_counter {
 public:
  void add(std::uint64_t n = 1, std::memory_order order = std::memory_order_relaxed) noexcept {
    std::atomic_ref(stripes_[thread_stripe::index()].value).fetch_add(n, order);
  }
  /// The sum; never less than in an earlier call by the same thread.
  [[nodiscard]] std::uint64_t read(std::memory_order order = std::memory_order_relaxed) const noexcept {
    std::uint64_t sum = 0;
    for (auto const& s : stripes_) sum += std::atomic_ref(const_cast<std::uint64_t&>(s.value)).load(order);
    return sum;
  }

 private:
  struct stripe {
    std::uint64_t value = 0;
    std::array<std::byte, cache_line - sizeof(value)> apart{};
  };
  std::array<stripe, stripes> stripes_{};
};

}  // namespace redoubt::detail
