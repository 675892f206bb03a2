// SPDX-License-Identifier: BSL-1.0
//
// Whether pauses are really uniform, and whether many clients really spread: not only that they stay in
// bounds.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <boost/math/distributions/chi_squared.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/random_seeds.hpp>
#include <redoubt/fsm/backoff.hpp>
#include <redoubt/fsm/retry_plan.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

/// How often each of `cells` equal parts of [0, ceiling] was hit.
std::vector<int> histogram(std::vector<duration> const& pauses, duration ceiling, std::size_t cells) {
  std::vector<int> out(cells);
  for (auto pause : pauses) {
    auto const cell =
        static_cast<std::size_t>(pause.count()) * cells / static_cast<std::size_t>(ceiling.count());
    ++out.at(std::min(cell, cells - 1));
  }
  return out;
}

/// Pearson's statistic against the uniform distribution.
double chi_squared(std::vector<int> const& counts) {
  double total = 0;
  for (int count : counts) total += count;
  auto const expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

/// Neither too far from uniform nor too close to it to be random: each bound is passed once in ten thousand.
void expect_uniform(std::vector<int> const& counts) {
  boost::math::chi_squared const law(static_cast<double>(counts.size() - 1));
  EXPECT_LT(chi_squared(counts), quantile(complement(law, 1e-4)));
  EXPECT_GT(chi_squared(counts), quantile(law, 1e-4));
}

TEST(full_jitter, the_test_itself_notices_what_is_not_uniform) {
  boost::math::chi_squared const law(63);
  auto const bound = quantile(complement(law, 1e-4));
  random_source random(1);
  std::vector<duration> equal_jitter, proportional, decorrelated;
  duration before = 10ms;
  for (int i = 0; i < 64'000; ++i) {
    equal_jitter.emplace_back(500'000 + random.below(500'001));  // half fixed, half random
    proportional.emplace_back(750'000 + random.below(500'001));  // 25 % around the pause
    before =
        duration(static_cast<duration::rep>(random.below(static_cast<std::uint64_t>(before.count()) * 3)));
    before = std::clamp<duration>(before, 1us, 1ms);  // AWS' decorrelated jitter
    decorrelated.push_back(before);
  }
  EXPECT_GT(chi_squared(histogram(equal_jitter, 1ms, 64)), bound);
  EXPECT_GT(chi_squared(histogram(proportional, 1250us, 64)), bound);
  EXPECT_GT(chi_squared(histogram(decorrelated, 1ms, 64)), bound);
}

TEST(full_jitter, E_06_every_pause_is_uniform_by_chi_squared) {
  backoff_options const options{.base = 10ms, .cap = 250ms};
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    random_source random(seed);
    std::vector<std::vector<duration>> pauses(7);
    for (int i = 0; i < 64'000; ++i) {
      backoff series(options);
      for (auto& each : pauses) each.push_back(series.next(random));
    }
    for (unsigned n = 0; n < pauses.size(); ++n) {
      SCOPED_TRACE(n);
      expect_uniform(histogram(pauses[n], backoff::ceiling(options, n), 64));
    }
  }
}

// The numbers of two pauses of one operation say nothing about each other: pairs fill a square evenly.
TEST(full_jitter, E_06_pauses_of_one_operation_are_independent) {
  backoff_options const options{.base = 100ms, .cap = 100ms};
  random_seeds seeds(7);
  std::vector<int> counts(64);
  for (int i = 0; i < 64'000; ++i) {
    auto random = seeds.next();
    backoff series(options);
    auto const first = static_cast<std::size_t>(series.next(random) * 8 / (100ms + 1ns));
    auto const second = static_cast<std::size_t>(series.next(random) * 8 / (100ms + 1ns));
    ++counts.at(first * 8 + second);
  }
  expect_uniform(counts);
}

// Clients that share one `retry`, so that their generators have neighbouring seeds, and clients of 1000
// processes.
TEST(full_jitter, E_07_a_thousand_clients_that_failed_together_spread_over_the_whole_window) {
  time_point const failed_at(1h);
  retry_options const options{.retries = 1, .total = 1h, .pause = {.base = 1s, .cap = 1s}};
  failure why;
  why.code = errc::connection_refused;
  why.effect = effect::none;
  for (bool shared : {true, false}) {
    random_seeds together(42);
    std::vector<duration> pauses;
    for (std::uint64_t client = 0; client < 1000; ++client) {
      random_seeds own(client * 0x9e3779b97f4a7c15ULL);
      auto random = shared ? together.next() : own.next();
      retry_plan plan(options, failed_at, {});
      auto const next = plan.after(why, repeat::not_executed, failed_at, random);
      ASSERT_EQ(next.what, retry_decision::kind::again);
      pauses.push_back(next.at - failed_at);
    }
    auto const counts = histogram(pauses, 1s, 20);
    expect_uniform(counts);
    EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 25) << "no part of the window stays empty";
    EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 85) << "and none gets a herd";
    EXPECT_LT(*std::min_element(pauses.begin(), pauses.end()), 10ms);
    EXPECT_GT(*std::max_element(pauses.begin(), pauses.end()), 990ms);
  }
}

}  // namespace
