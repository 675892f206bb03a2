// SPDX-License-Identifier: BSL-1.0
//
// Where a call's time went.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <redoubt/core/error.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// How long a call spent in each phase up to `phase::read`. Kept in whole microseconds, at most 71 minutes
/// each, so that a failure stays small. Value type.
class phase_times {
 public:
  /// Zero for `phase::done`.
  [[nodiscard]] constexpr duration of(phase where) const noexcept {
    auto const i = static_cast<std::size_t>(where);
    return i < micros_.size() ? duration(std::chrono::microseconds(micros_[i])) : duration{};
  }

  /// Adds `time`; nothing when it is not positive.
  constexpr void add(phase where, duration time) noexcept {
    auto const i = static_cast<std::size_t>(where);
    if (i >= micros_.size() || time <= duration::zero()) return;
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    auto const more = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    auto const sum = micros_[i] + static_cast<std::uint64_t>(more);
    micros_[i] = static_cast<std::uint32_t>(sum < most ? sum : most);
  }

  /// The sum of all phases.
  [[nodiscard]] constexpr duration total() const noexcept {
    duration out{};
    for (auto const one : micros_) out += std::chrono::microseconds(one);
    return out;
  }

  friend bool operator==(phase_times const&, phase_times const&) = default;

 private:
  std::array<std::uint32_t, static_cast<std::size_t>(phase::done)> micros_{};
};

}  // namespace redoubt
