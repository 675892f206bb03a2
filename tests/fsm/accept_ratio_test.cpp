// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/accept_ratio.hpp>

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

time_point const start{1h};

void record(accept_ratio& ratio, int count, bool accepted, time_point now = start) {
  for (int i = 0; i < count; ++i) ratio.record(now, accepted);
  ratio.check();
}

TEST(accept_ratio, follows_the_formula_of_the_book) {
  struct row {
    double k;
    int accepted, failed;
    double share;
  };
  for (auto const& each :
       {row{2, 100, 0, 0}, row{2, 50, 50, 0}, row{2, 40, 60, 20.0 / 101}, row{2, 10, 90, 80.0 / 101},
        row{1.5, 60, 40, 10.0 / 101}, row{1, 99, 1, 1.0 / 101}, row{2, 0, 100, 0.9}, row{2, 0, 12, 0.9}}) {
    accept_ratio ratio({.multiplier = each.k});
    record(ratio, each.accepted, true);
    record(ratio, each.failed, false);
    EXPECT_NEAR(ratio.refused_share(start), each.share, 1e-9) << each.accepted << " of " << each.k;
  }
}

TEST(accept_ratio, few_requests_say_nothing) {
  accept_ratio ratio({.minimum = 10});
  random_source random(1);
  record(ratio, 9, false);
  EXPECT_EQ(ratio.refused_share(start), 0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(ratio.admit(start, random));
  record(ratio, 1, false);
  EXPECT_GT(ratio.refused_share(start), 0);
}

TEST(accept_ratio, the_window_rolls) {
  accept_ratio ratio({.window = 16s});
  record(ratio, 50, false, start);
  record(ratio, 50, true, start + 8s);
  EXPECT_EQ(ratio.requests(), 100u);
  (void)ratio.refused_share(start + 15s);
  EXPECT_EQ(ratio.requests(), 100u);
  (void)ratio.refused_share(start + 16s);
  ratio.check();
  EXPECT_EQ(ratio.requests(), 50u);
  EXPECT_EQ(ratio.accepts(), 50u);
  record(ratio, 1, true, start);
  EXPECT_EQ(ratio.requests(), 51u) << "a late time counts as the last one";
  (void)ratio.refused_share(start + 24h);
  ratio.check();
  EXPECT_EQ(ratio.requests(), 0u);
}

TEST(accept_ratio, never_refuses_more_than_the_most) {
  accept_ratio ratio({.most = 0.9});
  random_source random(3);
  record(ratio, 1000, false);
  int sent = 0;
  for (int i = 0; i < 10'000; ++i) sent += ratio.admit(start, random) ? 1 : 0;
  EXPECT_NEAR(sent, 1000, 150);
}

// A service that takes 100 a second from 1000 that want to: what reaches it settles near K times that.
TEST(accept_ratio, load_settles_at_the_multiple_of_what_is_accepted) {
  for (double k : {1.1, 2.0}) {
    accept_ratio ratio({.multiplier = k, .window = 10s});
    random_source random(7);
    int sent = 0;
    for (int second = 0; second < 60; ++second) {
      int taken = 0;
      for (int i = 0; i < 1000; ++i) {
        auto const now = start + 1s * second + 1ms * i;
        if (!ratio.admit(now, random)) continue;
        bool const accepted = taken < (i + 1) / 10;
        taken += accepted ? 1 : 0;
        ratio.record(now, accepted);
        if (second >= 30) ++sent;
      }
      ratio.check();
    }
    EXPECT_NEAR(sent / 30.0, 100 * k, 20 * k);
  }
}

TEST(accept_ratio, recovery_ends_the_refusals) {
  accept_ratio ratio({.window = 10s});
  random_source random(5);
  record(ratio, 1000, false);
  auto now = start;
  int steps = 0;
  while (ratio.refused_share(now) > 0 && steps < 100'000) {
    now += 1ms;
    ++steps;
    if (ratio.admit(now, random)) ratio.record(now, true);
  }
  EXPECT_LE(now - start, 35s) << "one window, and two to double the share of a tenth";
}

// Every sequence of eight inputs.
struct ratio_search {
  std::size_t nodes = 0;
  void run(accept_ratio const& from, time_point now, int depth) {
    for (int input = 0; input < 4; ++input) {
      auto ratio = from;
      auto next = now;
      random_source random(nodes);
      if (input == 0) next += 400ms;
      if (input == 1) ratio.record(next, true);
      if (input == 2) ratio.record(next, false);
      if (input == 3) {
        auto const before = ratio.requests();
        auto const share = ratio.refused_share(next);
        bool const sent = ratio.admit(next, random);
        ASSERT_TRUE(sent || share > 0);
        ASSERT_TRUE(sent || ratio.requests() > 0);
        ASSERT_LE(ratio.requests(), before + 1);
      }
      ratio.check();
      auto const share = ratio.refused_share(next);
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 0.9);
      ++nodes;
      if (depth > 1) run(ratio, next, depth - 1);
    }
  }
};

TEST(accept_ratio, no_sequence_breaks_the_counts) {
  ratio_search search;
  search.run(accept_ratio({.window = 1s, .minimum = 1}), start, 8);
  EXPECT_EQ(search.nodes, 87380u);
}

TEST(accept_ratio, options_name_the_bad_field) {
  auto const field = [](accept_ratio_options o) -> std::string {
    try {
      accept_ratio ratio(o);
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.multiplier = 0.9}), "multiplier");
  EXPECT_EQ(field({.multiplier = std::numeric_limits<double>::quiet_NaN()}), "multiplier");
  EXPECT_EQ(field({.window = 1ms}), "window");
  EXPECT_EQ(field({.minimum = 0}), "minimum");
  EXPECT_EQ(field({.most = 1}), "most");
  EXPECT_EQ(field({}), "accepted");
}

}  // namespace
