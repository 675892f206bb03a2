// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/time.hpp>

#include <type_traits>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using redoubt::deadline;
using redoubt::duration;
using redoubt::saturating_add;
using redoubt::time_point;

time_point const start{1h};

TEST(deadline, a_default_one_adds_no_limit) {
  deadline const none;
  EXPECT_FALSE(none.is_set());
  EXPECT_FALSE(none.passed(start));
  EXPECT_EQ(earlier(none, deadline(start)), deadline(start));
  EXPECT_EQ(earlier(deadline(start), none), deadline(start));
  EXPECT_EQ(earlier(none, none), none);
}

TEST(deadline, has_passed_from_its_own_moment_on) {
  deadline const d(start);
  EXPECT_TRUE(d.is_set());
  EXPECT_FALSE(d.passed(start - 1ns));
  EXPECT_TRUE(d.passed(start));
  EXPECT_TRUE(d.passed(start + 1ns));
}

TEST(deadline, what_is_left_is_never_negative) {
  deadline const d(start);
  EXPECT_EQ(d.left(start - 5ms), 5ms);
  EXPECT_EQ(d.left(start), 0ns);
  EXPECT_EQ(d.left(start + 5ms), 0ns);
  EXPECT_GT(deadline().left(start), 24h * 365);
}

TEST(deadline, cannot_be_made_from_a_duration) {
  static_assert(!std::is_convertible_v<duration, deadline>);
  static_assert(!std::is_constructible_v<deadline, duration>);
  static_assert(!std::is_convertible_v<time_point, deadline>);
  static_assert(std::is_constructible_v<deadline, time_point>);
}

TEST(deadline, earlier_is_the_smaller_one) {
  EXPECT_EQ(earlier(deadline(start), deadline(start + 1ns)), deadline(start));
  EXPECT_EQ(earlier(deadline(start + 1ns), deadline(start)), deadline(start));
  EXPECT_LT(deadline(start), deadline(start + 1ns));
}

TEST(saturating_add, never_overflows) {
  EXPECT_EQ(saturating_add(start, 5ms), start + 5ms);
  EXPECT_EQ(saturating_add(start, -5ms), start - 5ms);
  EXPECT_EQ(saturating_add(start, duration::max()), time_point::max());
  EXPECT_EQ(saturating_add(time_point::max(), 1ns), time_point::max());
  EXPECT_EQ(saturating_add(time_point::max(), 0ns), time_point::max());
  EXPECT_EQ(saturating_add(time_point::max() - 1ns, 1ns), time_point::max());
  EXPECT_EQ(saturating_add(time_point(-1h), duration::min()), time_point::min());
  EXPECT_EQ(saturating_add(time_point::min(), -1ns), time_point::min());
  EXPECT_EQ(saturating_add(time_point::min(), duration::max()), time_point(duration(-1)));
}

}  // namespace
