// SPDX-License-Identifier: BSL-1.0
//
// Which address is tried when.
#include <redoubt/fsm/address_race.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using redoubt::address_race;
using redoubt::duration;
using redoubt::errc;
using redoubt::random_source;
using redoubt::time_point;

constexpr int v4 = 4;
constexpr int v6 = 6;

/// A race with a clock that the test moves, and addresses that behave as the test says.
struct rig {
  explicit rig(std::vector<int> const& families, duration limit = 1s, std::uint64_t seed = 1)
      : race(families, now, now + limit, random_source(seed)) {}

  time_point now{std::chrono::hours(1)};
  time_point const begun = now;
  address_race race;

  /// What is started at this very moment.
  std::vector<std::size_t> started() {
    std::vector<std::size_t> out;
    while (auto const address = race.next(now)) out.push_back(*address);
    EXPECT_TRUE(race.check());
    return out;
  }
  void failed(std::size_t address, errc why = errc::connection_refused) {
    race.on_failed(address, why, now);
    EXPECT_TRUE(race.check());
  }
};

using list = std::vector<std::size_t>;

TEST(address_race, one_address_needs_no_timer) {
  rig r({v4});
  EXPECT_EQ(r.started(), list{0});
  EXPECT_FALSE(r.race.next_wakeup());
  EXPECT_FALSE(r.race.lost());
  EXPECT_TRUE(r.race.on_connected(0));
  EXPECT_TRUE(r.race.check());
}

// C50: when silent addresses are tried, as milliseconds after the start.
TEST(address_race, C50_silent_addresses_share_the_time) {
  struct row {
    std::string name;
    std::size_t addresses;
    duration limit;
    std::vector<int> at;
  };
  std::vector<row> const table{
      {"two and a second: the RFC's 250 ms", 2, 1s, {0, 250}},
      {"two and 100 ms", 2, 100ms, {0, 50}},
      {"six and 300 ms", 6, 300ms, {0, 50, 100, 150, 200, 250}},
      {"four and 400 ms", 4, 400ms, {0, 100, 200, 300}},
      {"three and ten seconds", 3, 10s, {0, 250, 500}},
      {"more than there is time for: never closer than 10 ms", 100, 50ms, {0, 10, 20, 30, 40, 50}},
  };
  for (auto const& row : table) {
    SCOPED_TRACE(row.name);
    rig r(std::vector<int>(row.addresses, v4), row.limit);
    std::vector<int> at;
    std::set<std::size_t> tried;
    while (r.now <= r.begun + row.limit) {
      for (auto const address : r.started()) {
        at.push_back(static_cast<int>((r.now - r.begun) / 1ms));
        EXPECT_TRUE(tried.insert(address).second) << "twice";
      }
      if (!r.race.next_wakeup()) break;
      ASSERT_GT(*r.race.next_wakeup(), r.now) << "a hot loop";
      r.now = *r.race.next_wakeup();
    }
    EXPECT_EQ(at, row.at);
  }
}

TEST(address_race, C50_a_refused_address_is_followed_by_the_next_at_once) {
  rig r({v6, v4});
  EXPECT_EQ(r.started(), list{0});
  r.failed(0);
  EXPECT_EQ(r.race.next_wakeup(), r.now);
  EXPECT_EQ(r.started(), list{1});
  EXPECT_FALSE(r.race.lost());
  EXPECT_TRUE(r.race.on_connected(1));
}

TEST(address_race, C50_an_address_is_not_given_up_for_the_next_one) {
  rig r({v6, v4});
  (void)r.started();
  r.now += 250ms;
  EXPECT_EQ(r.started(), list{1});
  EXPECT_TRUE(r.race.on_connected(0)) << "the first one, late";
  EXPECT_FALSE(r.race.on_connected(1)) << "there is one winner";
  EXPECT_TRUE(r.race.check());
  EXPECT_FALSE(r.race.next_wakeup());
}

TEST(address_race, C50_families_take_turns_and_the_resolvers_choice_begins) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<int> const families{v6, v6, v6, v4, v4};
    rig r(families, 10s, seed);
    std::vector<int> order;
    while (order.size() < families.size()) {
      for (auto const address : r.started()) {
        order.push_back(families[address]);
        r.failed(address);
      }
    }
    EXPECT_EQ(order, (std::vector<int>{v6, v4, v6, v4, v6}));
  }
}

TEST(address_race, C50_within_a_family_every_address_comes_first_equally_often) {
  std::map<std::size_t, int> first;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    rig r({v4, v4, v4, v4}, 1s, seed);
    ++first[r.started().front()];
  }
  ASSERT_EQ(first.size(), 4u);
  for (auto const& [address, times] : first) {
    EXPECT_GT(times, 850) << address;  // 1000 expected; 850 is more than 5 standard deviations away
    EXPECT_LT(times, 1150) << address;
  }
}

TEST(address_race, is_lost_when_the_last_attempt_has_failed_and_says_the_best_reason) {
  rig r({v6, v4, v4});
  (void)r.started();
  r.failed(0, errc::connect_failed);
  EXPECT_EQ(r.race.why(), errc::connect_failed);
  auto const second = r.started().front();
  r.failed(second, errc::connection_refused);
  EXPECT_FALSE(r.race.lost());
  auto const third = r.started().front();
  r.failed(third, errc::connect_failed);
  EXPECT_TRUE(r.race.lost());
  EXPECT_EQ(r.race.why(), errc::connection_refused);
  EXPECT_FALSE(r.race.next_wakeup());
  EXPECT_EQ(r.started(), list{});
}

TEST(address_race, a_late_failure_does_not_lose_a_race_whose_other_attempts_run) {
  rig r({v6, v4});
  (void)r.started();
  r.now += 250ms;
  (void)r.started();
  r.failed(0);
  EXPECT_FALSE(r.race.lost());
  r.failed(0);  // twice
  EXPECT_FALSE(r.race.lost());
  r.failed(1);
  EXPECT_TRUE(r.race.lost());
}

TEST(address_race, results_of_addresses_that_were_not_tried_do_nothing) {
  rig r({v6, v4});
  EXPECT_FALSE(r.race.on_connected(1));
  r.failed(1);
  EXPECT_EQ(r.started(), list{0});
  EXPECT_TRUE(r.race.on_connected(0));
  r.failed(0);
  EXPECT_FALSE(r.race.lost());
}

// Every order of results for up to four addresses: one winner or all failed, never both, nothing tried twice.
TEST(address_race, every_short_history_ends_in_one_way) {
  random_source random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<int> families;
    for (auto n = random.below(4) + 1; n > 0; --n) families.push_back(random.below(2) == 0 ? v4 : v6);
    rig r(families, 1ms * (random.below(500) + 1), random());
    std::vector<std::size_t> open;
    std::set<std::size_t> tried;
    bool won = false;
    for (int step = 0; step < 40 && !won && !r.race.lost(); ++step) {
      for (auto const address : r.started()) {
        ASSERT_TRUE(tried.insert(address).second);
        open.push_back(address);
      }
      if (random.below(3) == 0 || open.empty()) {
        if (r.race.next_wakeup()) r.now = std::max(r.now, *r.race.next_wakeup());
        continue;
      }
      auto const at = random.below(open.size());
      auto const address = open[at];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      if (random.below(4) == 0) {
        ASSERT_TRUE(r.race.on_connected(address));
        won = true;
      } else {
        r.failed(address);
      }
    }
    EXPECT_NE(won, r.race.lost());
    if (r.race.lost()) {
      EXPECT_EQ(tried.size(), families.size());
    }
  }
}

}  // namespace
