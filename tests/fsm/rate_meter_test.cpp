// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/rate_meter.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/core/random.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

time_point const start{1h};

// The times of the first `count` requests that all want to go at `now`.
std::vector<duration> turns(rate_meter const& meter, int count, time_point now = start) {
  std::vector<duration> out;
  auto state = rate_meter::full;
  for (int i = 0; i < count; ++i) {
    auto const got = meter.take(state, now, time_point::max());
    EXPECT_TRUE(got.granted);
    state = got.state;
    out.push_back(got.at - now);
  }
  return out;
}

TEST(rate_meter, E_18_without_a_burst_requests_are_evenly_spread) {
  rate_meter const meter({.limit = 100, .per = 1min});
  EXPECT_EQ(meter.interval(), 600ms);
  EXPECT_EQ(turns(meter, 4), (std::vector<duration>{0ms, 600ms, 1200ms, 1800ms}));
}

TEST(rate_meter, E_18_a_burst_lowers_the_steady_rate) {
  rate_meter const meter({.limit = 100, .per = 60s, .burst = 41});
  EXPECT_EQ(meter.interval(), 1s);
  auto const got = turns(meter, 44);
  EXPECT_EQ(std::count(got.begin(), got.end(), 0s), 41);
  EXPECT_EQ(got[41], 1s);
  EXPECT_EQ(got[43], 3s);
}

TEST(rate_meter, who_cannot_wait_is_refused_and_told_when) {
  rate_meter const meter({.limit = 1, .per = 1s});
  auto const first = meter.take(rate_meter::full, start, start);
  ASSERT_TRUE(first.granted);
  auto const second = meter.take(first.state, start + 400ms, start + 400ms);
  EXPECT_FALSE(second.granted);
  EXPECT_EQ(second.at, start + 1s);
  EXPECT_EQ(second.state, first.state) << "a refusal costs nothing";
  auto const waits = meter.take(second.state, start + 400ms, start + 1s);
  EXPECT_TRUE(waits.granted);
  EXPECT_EQ(waits.at, start + 1s);
}

TEST(rate_meter, a_pause_that_is_asked_for_is_obeyed_and_no_burst_follows) {
  rate_meter const meter({.limit = 10, .per = 10s, .burst = 6});
  auto state = meter.held_off(rate_meter::full, start + 30s);
  EXPECT_EQ(meter.held_off(state, start + 20s), state) << "a shorter one changes nothing";
  for (int i = 0; i < 3; ++i) {
    auto const got = meter.take(state, start, time_point::max());
    EXPECT_EQ(got.at, start + 30s + i * meter.interval());
    state = got.state;
  }
}

TEST(rate_meter, the_ends_of_time_do_not_overflow) {
  rate_meter const meter({.limit = 5, .per = 24h, .burst = 5});
  for (auto now : {time_point::min(), time_point{}, time_point::max()}) {
    auto state = rate_meter::full;
    for (int i = 0; i < 7; ++i) {
      auto const got = meter.take(state, now, time_point::max());
      ASSERT_TRUE(got.granted);
      ASSERT_GE(got.at, now);
      state = got.state;
    }
  }
  rate_meter const fast({.limit = 1'000'000'000, .per = 1ms});
  EXPECT_EQ(fast.interval(), 1ns);
}

// Requests at any times, some ready to wait: in no stretch of `per` more than `limit` go.
TEST(rate_meter, E_18_the_quota_holds_in_every_window) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    random_source random(seed);
    auto const limit = static_cast<std::uint32_t>(1 + random.below(12));
    auto const burst = static_cast<std::uint32_t>(1 + random.below(limit));
    auto const per = duration(1'000'000 + static_cast<duration::rep>(random.below(1'000'000)));
    rate_meter const meter({.limit = limit, .per = per, .burst = burst});
    auto state = rate_meter::full;
    auto now = start;
    std::vector<time_point> gone;
    for (int i = 0; i < 200; ++i) {
      now += duration(static_cast<duration::rep>(
          random.below(random.chance(1, 10) ? 3'000'000 : static_cast<std::uint64_t>(per.count()) / limit)));
      auto const patience = duration(static_cast<duration::rep>(random.below(2'000'000)));
      auto const got = meter.take(state, now, now + patience);
      if (!got.granted) continue;
      ASSERT_GE(got.at, now);
      ASSERT_LE(got.at, now + patience);
      state = got.state;
      gone.push_back(got.at);
    }
    ASSERT_TRUE(std::is_sorted(gone.begin(), gone.end())) << "turns in the order of the requests";
    for (std::size_t i = 0; i + limit < gone.size(); ++i)
      ASSERT_GE(gone[i + limit] - gone[i], per)
          << "seed " << seed << " limit " << limit << " burst " << burst;
    ASSERT_GE(gone.size(), burst);
  }
}

TEST(rate_meter, the_quota_is_used_up_at_the_steady_rate) {
  rate_meter const meter({.limit = 100, .per = 1min});
  auto state = rate_meter::full;
  int gone = 0;
  for (auto now = start; now < start + 1h; now += 50ms) {
    auto const got = meter.take(state, now, now);
    if (got.granted) ++gone;
    state = got.state;
  }
  EXPECT_EQ(gone, 6000);
}

// Every sequence of eight inputs (short, long step; patient, impatient request) for every small quota.
struct quota_search {
  rate_meter meter;
  std::uint32_t limit;
  duration per;
  std::size_t nodes = 0;

  void run(time_point state, time_point now, std::vector<time_point> const& gone, int depth) {
    for (int input = 0; input < 4; ++input) {
      auto next_state = state;
      auto next_now = now;
      auto next_gone = gone;
      if (input == 0) next_now += per / 4;
      if (input == 1) next_now += per;
      if (input >= 2) {
        auto const got = meter.take(state, now, input == 2 ? now : now + per / 2);
        next_state = got.state;
        if (got.granted) next_gone.push_back(got.at);
        if (next_gone.size() > limit) {
          ASSERT_GE(next_gone.back() - next_gone[next_gone.size() - 1 - limit], per);
        }
      }
      ++nodes;
      if (depth > 1) run(next_state, next_now, next_gone, depth - 1);
    }
  }
};

TEST(rate_meter, no_sequence_exceeds_a_small_quota) {
  for (std::uint32_t limit = 1; limit <= 3; ++limit) {
    for (std::uint32_t burst = 1; burst <= limit; ++burst) {
      quota_search search{rate_meter({.limit = limit, .per = 1s, .burst = burst}), limit, 1s};
      search.run(rate_meter::full, start, {}, 8);
      EXPECT_EQ(search.nodes, 87380u);
    }
  }
}

TEST(rate_meter, options_name_the_bad_field) {
  auto const field = [](rate_options o) -> std::string {
    try {
      rate_meter meter(o);
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.limit = 0, .per = 1s}), "limit");
  EXPECT_EQ(field({.limit = 1, .per = 1us}), "per");
  EXPECT_EQ(field({.limit = 1, .per = 25h}), "per");
  EXPECT_EQ(field({.limit = 5, .per = 1s, .burst = 6}), "burst");
  EXPECT_EQ(field({.limit = 5, .per = 1s, .burst = 0}), "burst");
  EXPECT_EQ(field({.limit = 5, .per = 1s, .burst = 5}), "accepted");
}

}  // namespace
