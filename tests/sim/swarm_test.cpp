// SPDX-License-Identifier: BSL-1.0
//
// A thousand seeds of random faults, or REDOUBT_SWARM_RUNS of them. A failure names its seed; REDOUBT_SEED=n
// runs that seed alone.
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "swarm.hpp"

namespace {

std::string in_words(swarm::outcome const& o) {
  std::string out;
  for (auto const& line : o.broken) out += "\n  " + line;
  return out;
}

TEST(swarm, every_oracle_holds_in_every_run) {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  if (auto const* runs = std::getenv("REDOUBT_SWARM_RUNS")) last = std::strtoull(runs, nullptr, 10);
  if (auto const* only = std::getenv("REDOUBT_SEED")) first = last = std::strtoull(only, nullptr, 10);
  swarm::outcome all;
  for (auto seed = first; seed <= last; ++seed) {
    auto const o = swarm::run(seed);
    ASSERT_TRUE(o.broken.empty()) << "seed " << seed << in_words(o) << "\n  again: REDOUBT_SEED=" << seed
                                  << " redoubt_sim_tests --gtest_filter=swarm.every*";
    all.calls += o.calls;
    all.answered += o.answered;
    all.unknown += o.unknown;
    all.not_executed += o.not_executed;
    all.discarded += o.discarded;
  }
  std::cout << last - first + 1 << " runs, " << all.calls << " calls: " << all.answered << " answered, "
            << all.not_executed << " failed with effect none, " << all.unknown << " with effect unknown, "
            << all.discarded << " late replies discarded\n";
  if (first != last) {
    // A simulation in which nothing goes wrong proves nothing.
    EXPECT_GT(all.unknown, all.calls / 100);
    EXPECT_GT(all.not_executed, all.calls / 100);
    EXPECT_GT(all.discarded, 0u);
    EXPECT_GT(all.answered, all.calls / 3);
  }
}

TEST(swarm, the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed : {3u, 14u, 159u, 265u, 3589u})
    EXPECT_EQ(swarm::run(seed).hash, swarm::run(seed).hash) << seed;
  EXPECT_NE(swarm::run(1).hash, swarm::run(2).hash);
}

}  // namespace
