// SPDX-License-Identifier: BSL-1.0
//
// A number that any thread may raise and read.
#pragma once

#include <atomic>
#include <cstdint>

namespace redoubt::detail {

/// A monotonic count. Thread-safe; counts of one object are read one after the other, so their sum can be off
/// by what happens meanwhile.
class counter {
 public:
  /// The count before.
  std::uint64_t add() noexcept { return value_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace redoubt::detail
