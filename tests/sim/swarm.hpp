// SPDX-License-Identifier: BSL-1.0
//
// One simulated run of a client under random faults, with the oracles of docs/TESTING.md checked after every
// step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace swarm {

/// What a run came to.
struct outcome {
  std::uint64_t hash = 0;  ///< Same seed, same hash.
  std::uint64_t calls = 0;
  std::uint64_t answered = 0;
  std::uint64_t unknown = 0;        ///< Failures with effect unknown.
  std::uint64_t not_executed = 0;   ///< Failures with effect none.
  std::uint64_t discarded = 0;      ///< Late replies.
  std::vector<std::string> broken;  ///< Oracles that did not hold, in words; empty when all is well.
};

/// Runs `seed`: faults on, then recovery, then shutdown.
[[nodiscard]] outcome run(std::uint64_t seed);

}  // namespace swarm
