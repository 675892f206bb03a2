// SPDX-License-Identifier: BSL-1.0
//
// From the samples of all rounds to medians, a table and a JSON file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine.hpp"
#include "peer.hpp"

namespace bench {

/// One peer in one cell, over all rounds.
struct line {
  cell what;
  std::string peer;
  std::vector<double> ops_per_s;  ///< One per round, in the order of the rounds.
  std::vector<double> cpu_us_per_op;
  std::vector<double> allocations_per_op;
  std::vector<double> p50_us;  ///< Only with one in flight.
  std::vector<double> p99_us;
  std::uint64_t answers = 0;
  std::uint64_t wrong = 0;
  std::uint64_t failed = 0;

  void add(sample s);
};

/// Everything that was measured.
struct report {
  facts machine;
  facts versions;
  facts settings;
  std::vector<line> lines;

  [[nodiscard]] line& at(cell const& what, std::string_view peer);
  [[nodiscard]] line const* find(cell const& what, std::string_view peer) const;

  /// How many times as fast as `other` the line's peer was: the median over the rounds of the ratio within
  /// each round. Empty when `other` was not in the run.
  [[nodiscard]] std::optional<double> ratio(line const& one, std::string_view other) const;

  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string json() const;
};

[[nodiscard]] double median(std::vector<double> values);

}  // namespace bench
