// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/random_seeds.hpp>

#include <random>

namespace redoubt {
namespace {

std::uint64_t entropy() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

random_seeds::random_seeds(std::optional<std::uint64_t> seed) : next_(seed ? *seed : entropy()) {}

}  // namespace redoubt
