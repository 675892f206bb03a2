// SPDX-License-Identifier: BSL-1.0
//
// What a stack of guards amounts to, as values: printed at start-up, compared in a test.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <redoubt/guard/layer.hpp>

namespace redoubt {

/// The layers of a stack from the inside out, with the worst case of each. Two stacks with the same plan
/// behave the same.
struct plan {
  std::vector<layer_description> layers;

  /// The worst case of the whole. `duration::max()` and the largest integer: no bound.
  [[nodiscard]] call_figures worst_case() const {
    return layers.empty() ? call_figures{} : layers.back().figures;
  }

  /// Throws `option_error` when a call can take longer than `budget`: for start-up, so that the sum of a
  /// route's limits is checked before the first request comes.
  void require_within(duration budget) const;

  /// One line per layer, the outermost first, then the worst case.
  [[nodiscard]] std::string text() const;

  friend bool operator==(plan const&, plan const&) = default;
};

/// The longest that steps one after the other can take; no overflow, `duration::max()` for no bound.
template <class... Plans>
[[nodiscard]] duration worst_time_of(Plans const&... plans) {
  time_point sum{};
  for (auto const each : {plans.worst_case().worst_time...}) sum = saturating_add(sum, each);
  return sum == time_point::max() ? duration::max() : sum.time_since_epoch();
}

/// Prints `text()`.
std::ostream& operator<<(std::ostream& out, plan const& p);

}  // namespace redoubt
