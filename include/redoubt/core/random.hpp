// SPDX-License-Identifier: BSL-1.0
//
// A small portable generator. The standard distributions give different numbers on different standard
// libraries, which would break "same seed, same run"; so only integer arithmetic of our own is used.
#pragma once

#include <cstdint>

namespace redoubt {

/// xoshiro256** 1.0 (Blackman and Vigna, public domain reference algorithm), seeded through splitmix64.
/// Not for secrets. Not thread-safe. Same seed, same sequence, on every platform.
class random_source {
 public:
  using result_type = std::uint64_t;

  constexpr explicit random_source(std::uint64_t seed) noexcept {
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }

  /// The next 64 random bits.
  constexpr std::uint64_t operator()() noexcept {
    auto const out = rotate(state_[1] * 5, 7) * 9;
    auto const t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return out;
  }

  /// Uniform in [0, bound): multiply-shift (Lemire 2016) with rejection, hence without bias. `bound` 0 gives
  /// 0.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    if (bound == 0) return 0;
    for (;;) {
      __extension__ using wide = unsigned __int128;
      auto const product = static_cast<wide>((*this)()) * bound;
      auto const low = static_cast<std::uint64_t>(product);
      if (low >= bound || low >= (0 - bound) % bound) return static_cast<std::uint64_t>(product >> 64);
    }
  }

  /// True with probability `numerator / denominator`.
  constexpr bool chance(std::uint64_t numerator, std::uint64_t denominator) noexcept {
    return below(denominator) < numerator;
  }

  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

 private:
  static constexpr std::uint64_t rotate(std::uint64_t x, int k) noexcept {
    return (x << k) | (x >> (64 - k));
  }

  std::uint64_t state_[4]{};
};

}  // namespace redoubt
