// SPDX-License-Identifier: BSL-1.0
//
// Thousands of deadlines, one timer. A hashed timing wheel (Varghese and Lauck 1987, scheme 6): inserting and
// removing are O(1), a deadline is reported at most one tick late and never early.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// Holds a deadline per small integer (the owner's slot number). Copyable; no clock inside. Internal tier:
/// may change in any version.
class deadline_wheel {
 public:
  /// The resolution: a deadline is reported between its time and one tick later.
  static constexpr duration tick = std::chrono::milliseconds(1);

  /// Adds item `index`, which must not be in the wheel. A time that has passed at `now` is reported within
  /// one tick.
  void add(std::uint32_t index, time_point when, time_point now);

  /// Removes item `index`; does nothing when it is not in the wheel.
  void remove(std::uint32_t index) noexcept;

  /// True when item `index` is in the wheel.
  [[nodiscard]] bool contains(std::uint32_t index) const noexcept {
    return index < nodes_.size() && nodes_[index].bucket != no_bucket;
  }

  /// Takes out every item whose deadline has passed and appends it to `expired`, in no particular order.
  void on_time(time_point now, std::vector<std::uint32_t>& expired);

  /// A time at which `on_time` is worth calling: at or before the earliest deadline's report. Empty when the
  /// wheel is.
  [[nodiscard]] std::optional<time_point> next_wakeup() const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Asserts the invariants; for tests. Returns false when one does not hold.
  [[nodiscard]] bool check() const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint16_t no_bucket = 0xffff;
  static constexpr std::size_t buckets = 512;

  struct node {
    std::int64_t due = 0;  // in ticks
    std::uint32_t previous = none;
    std::uint32_t next = none;
    std::uint16_t bucket = no_bucket;
  };

  void link(std::uint32_t index, std::uint16_t bucket) noexcept;
  void sweep(std::uint16_t bucket, std::int64_t until, std::vector<std::uint32_t>& expired);

  std::array<std::uint32_t, buckets> heads_ = [] {
    std::array<std::uint32_t, buckets> all{};
    all.fill(none);
    return all;
  }();
  std::array<std::uint64_t, buckets / 64> occupied_{};  // one bit per bucket
  std::vector<node> nodes_;
  std::int64_t swept_ = 0;  // every tick up to this one has been swept
  std::size_t size_ = 0;
};

}  // namespace redoubt
