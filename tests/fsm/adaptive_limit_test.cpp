// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/adaptive_limit.hpp>

#include <algorithm>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::adaptive_limit;
using redoubt::adaptive_limit_options;
using redoubt::duration;
using redoubt::time_point;

/// A dependency that does so much at once in 10 ms; more than that queues up behind it.
struct dependency {
  double capacity;
  [[nodiscard]] duration takes(std::uint32_t at_once) const {
    return std::chrono::duration_cast<duration>(10ms * std::max(1.0, at_once / capacity));
  }
};

std::uint32_t settle(adaptive_limit& limit, dependency d, double share_used, time_point& now, int seconds) {
  for (int i = 0; i < seconds * 100; ++i) {
    now += 10ms;
    auto const used = std::max(1u, static_cast<std::uint32_t>(limit.limit() * share_used));
    (void)limit.observe(d.takes(used), used, now);
    limit.check();
  }
  return limit.limit();
}

TEST(adaptive_limit, rises_to_the_ceiling_while_nothing_queues) {
  adaptive_limit limit({}, 64);
  time_point now{1h};
  EXPECT_EQ(limit.limit(), 8u);
  EXPECT_EQ(settle(limit, {1000}, 1.0, now, 60), 64u);
}

TEST(adaptive_limit, does_not_rise_while_it_is_not_used) {
  adaptive_limit limit({}, 64);
  time_point now{1h};
  EXPECT_EQ(settle(limit, {1000}, 0.2, now, 60), 8u);
}

TEST(adaptive_limit, sinks_when_the_dependency_slows_down_and_comes_back) {
  adaptive_limit limit({}, 64);
  time_point now{1h};
  (void)settle(limit, {1000}, 1.0, now, 60);
  auto const slow = settle(limit, {8}, 1.0, now, 20);
  EXPECT_LT(slow, 32u) << "also in an overload that lasts";
  EXPECT_GE(slow, 2u);
  EXPECT_EQ(settle(limit, {1000}, 1.0, now, 60), 64u);
}

TEST(adaptive_limit, stays_between_the_floor_and_the_ceiling) {
  adaptive_limit limit({.floor = 4, .initial = 10}, 6);
  EXPECT_EQ(limit.limit(), 6u);
  time_point now{1h};
  (void)limit.observe(1ms, 6, now);
  for (int i = 0; i < 500; ++i) (void)limit.observe(1s, 6, now += 100ms);
  EXPECT_GE(limit.limit(), 4u);
  limit.set_ceiling(2);
  EXPECT_EQ(limit.limit(), 2u) << "the ceiling holds whatever the floor says";
  limit.check();
}

TEST(adaptive_limit, names_the_option_that_is_out_of_range) {
  adaptive_limit_options o;
  o.tolerance = 0.5;
  EXPECT_THROW(o.validate(), redoubt::option_error);
}

}  // namespace
