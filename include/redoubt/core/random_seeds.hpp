// SPDX-License-Identifier: BSL-1.0
//
// One object that many threads draw from: each draw gets a generator of its own, so none is shared and none
// is locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include <redoubt/core/random.hpp>

namespace redoubt {

/// Hands out `random_source`s that differ from each other. Thread-safe. Not for secrets.
class random_seeds {
 public:
  /// With a seed: the same sequence of sources in every run. Without: one that the system's entropy chooses.
  explicit random_seeds(std::optional<std::uint64_t> seed);

  /// The next source.
  [[nodiscard]] random_source next() noexcept {
    return random_source(next_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace redoubt
