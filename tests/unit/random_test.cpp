// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/random.hpp>
#include <redoubt/core/random_seeds.hpp>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace {

using redoubt::random_seeds;
using redoubt::random_source;

/// Pearson's statistic for draws that should be uniform.
double chi_squared(std::vector<std::size_t> const& counts) {
  std::size_t total = 0;
  for (auto const n : counts) total += n;
  auto const expected = static_cast<double>(total) / static_cast<double>(counts.size());
  double sum = 0;
  for (auto const n : counts) {
    auto const off = static_cast<double>(n) - expected;
    sum += off * off / expected;
  }
  return sum;
}

/// Bounds that a fair generator leaves once in a million: mean +- 5 standard deviations, roughly.
void expect_uniform(std::vector<std::size_t> const& counts) {
  auto const freedom = static_cast<double>(counts.size() - 1);
  auto const statistic = chi_squared(counts);
  EXPECT_LT(statistic, freedom + 5 * std::sqrt(2 * freedom) + 15) << counts.size() << " classes";
  EXPECT_GT(statistic, freedom - 5 * std::sqrt(2 * freedom) - 15)
      << "too even: " << counts.size() << " classes";
}

TEST(random_source, below_is_uniform) {
  for (std::uint64_t bound : {2u, 3u, 7u, 10u, 100u, 1000u}) {
    random_source random(bound);
    std::vector<std::size_t> counts(bound);
    for (std::size_t i = 0; i < 200 * bound + 10'000; ++i) ++counts.at(random.below(bound));
    expect_uniform(counts);
  }
}

TEST(random_source, below_is_uniform_where_a_modulo_would_not_be) {
  // Two thirds of the range: the low third would come up twice as often.
  auto const bound = (~std::uint64_t{0} / 3) * 2;
  random_source random(9);
  std::vector<std::size_t> counts(8);
  for (int i = 0; i < 80'000; ++i) {
    auto const n = random.below(bound);
    ASSERT_LT(n, bound);
    ++counts[n / (bound / 8 + 1)];
  }
  expect_uniform(counts);
}

TEST(random_source, every_bit_and_every_pair_of_neighbours_is_uniform) {
  random_source random(64);
  std::array<std::vector<std::size_t>, 64> bits;
  for (auto& b : bits) b.resize(2);
  std::vector<std::size_t> pairs(256);
  auto last = random();
  for (int i = 0; i < 50'000; ++i) {
    auto const n = random();
    for (std::size_t b = 0; b < 64; ++b) ++bits[b][(n >> b) & 1];
    ++pairs[((last >> 60) << 4) | (n >> 60)];
    last = n;
  }
  for (auto const& b : bits) EXPECT_LT(chi_squared(b), 30);
  expect_uniform(pairs);
}

TEST(random_source, is_the_published_generator) {
  // xoshiro256** seeded with 0 through splitmix64, as in the reference implementation.
  random_source random(0);
  EXPECT_EQ(random(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random(), 0xbf6e1f784956452au);
  EXPECT_EQ(random(), 0x1a5f849d4933e6e0u);
  EXPECT_EQ(random(), 0x6aa594f1262d2d2cu);
}

TEST(random_source, edges) {
  random_source random(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(random.below(0), 0u);
    EXPECT_EQ(random.below(1), 0u);
    EXPECT_LT(random.below(~std::uint64_t{0}), ~std::uint64_t{0});
    EXPECT_FALSE(random.chance(0, 10));
    EXPECT_TRUE(random.chance(10, 10));
  }
}

TEST(random_source, chance_is_what_it_says) {
  random_source random(2);
  std::size_t hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random.chance(3, 10) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(hits), 30'000, 800);
}

TEST(random_source, same_seed_same_sequence_and_neighbouring_seeds_differ) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    random_source a(seed);
    random_source b(seed);
    auto const first = a();
    EXPECT_EQ(first, b());
    EXPECT_TRUE(firsts.insert(first).second);
  }
}

TEST(random_seeds, with_a_seed_repeats_itself) {
  random_seeds a(5);
  random_seeds b(5);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    auto first = a.next();
    auto second = b.next();
    auto const n = first();
    EXPECT_EQ(n, second());
    EXPECT_TRUE(seen.insert(n).second) << "no two are alike";
  }
}

TEST(random_seeds, without_one_differs) {
  random_seeds a(std::nullopt);
  random_seeds b(std::nullopt);
  EXPECT_NE(a.next()(), b.next()());
}

}  // namespace
