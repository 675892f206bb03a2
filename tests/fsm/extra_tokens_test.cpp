// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/extra_tokens.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

time_point const start{1h};

// How many are given out in a row.
int drain(extra_tokens& tokens, std::uint64_t operations, time_point now) {
  int given = 0;
  while (tokens.take(1, operations, now)) ++given;
  return given;
}

TEST(extra_tokens, starts_full_and_ends) {
  extra_tokens tokens({.ratio = 0, .per_second = 0, .capacity = 7});
  EXPECT_EQ(drain(tokens, 0, start), 7);
  EXPECT_EQ(drain(tokens, 1'000'000, start + 24h), 0) << "nothing is earned";
}

TEST(extra_tokens, operations_earn_by_the_ratio) {
  extra_tokens tokens({.ratio = 0.1, .per_second = 0, .capacity = 10});
  EXPECT_EQ(drain(tokens, 0, start), 10);
  EXPECT_EQ(drain(tokens, 9, start), 0);
  EXPECT_EQ(drain(tokens, 10, start), 1);
  EXPECT_EQ(drain(tokens, 65, start), 5) << "half a token is kept";
  EXPECT_EQ(drain(tokens, 70, start), 1);
  EXPECT_EQ(drain(tokens, 70, start), 0) << "each operation earns once";
  EXPECT_EQ(drain(tokens, std::numeric_limits<std::uint64_t>::max(), start), 10) << "no more than fits";
}

TEST(extra_tokens, time_earns_too_and_never_runs_backwards) {
  extra_tokens tokens({.ratio = 0, .per_second = 2, .capacity = 10});
  EXPECT_EQ(drain(tokens, 0, start), 10);
  EXPECT_EQ(drain(tokens, 0, start + 499ms), 0);
  EXPECT_EQ(drain(tokens, 0, start + 500ms), 1);
  EXPECT_EQ(drain(tokens, 0, start), 0);
  EXPECT_EQ(drain(tokens, 0, start + 500ms), 0) << "the same half second again";
  EXPECT_EQ(drain(tokens, 0, time_point::max()), 10);
}

TEST(extra_tokens, time_may_earn_less_than_one_a_second) {
  extra_tokens tokens({.ratio = 0, .per_second = 0.1, .capacity = 2});
  EXPECT_EQ(drain(tokens, 0, start), 2);
  EXPECT_EQ(drain(tokens, 0, start + 9999ms), 0);
  EXPECT_EQ(drain(tokens, 0, start + 10s), 1);
}

TEST(extra_tokens, what_is_too_dear_takes_nothing) {
  extra_tokens tokens({.ratio = 0, .per_second = 0, .capacity = 3});
  EXPECT_TRUE(tokens.take(2, 0, start));
  EXPECT_FALSE(tokens.take(2, 0, start));
  EXPECT_DOUBLE_EQ(tokens.balance(), 1);
  EXPECT_TRUE(tokens.take(1, 0, start));
}

// Every sequence of eight inputs: the bound that the documentation states holds over every stretch of it.
struct bound_search {
  extra_tokens_options options{.ratio = 0.5, .per_second = 1, .capacity = 2};
  struct point {
    std::uint64_t operations;
    time_point now;
    std::uint64_t given;
  };
  std::size_t nodes = 0;

  void run(extra_tokens const& from, std::vector<point> const& past, int depth) {
    for (int input = 0; input < 4; ++input) {
      auto tokens = from;
      auto next = past.back();
      if (input == 0) next.operations += 1;
      if (input == 1) next.now += 600ms;
      if (input >= 2) {
        auto const price = static_cast<std::uint32_t>(input - 1);
        if (tokens.take(price, next.operations, next.now)) next.given += price;
      }
      tokens.check();
      ++nodes;
      auto path = past;
      path.push_back(next);
      for (auto const& before : past) {
        auto const seconds = std::chrono::duration<double>(next.now - before.now).count();
        auto const most = options.capacity + seconds * options.per_second +
                          static_cast<double>(next.operations - before.operations) * options.ratio;
        ASSERT_LE(static_cast<double>(next.given - before.given), most + 1e-6);
      }
      if (depth > 1) run(tokens, path, depth - 1);
    }
  }
};

TEST(extra_tokens, no_sequence_gives_out_more_than_the_bound) {
  bound_search search;
  search.run(extra_tokens(search.options), {{0, start, 0}}, 8);
  EXPECT_EQ(search.nodes, 87380u);  // 4 + 4^2 + ... + 4^8
}

TEST(extra_tokens, options_name_the_bad_field) {
  auto const field = [](extra_tokens_options o) -> std::string {
    try {
      extra_tokens tokens(o);
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.ratio = -0.1}), "ratio");
  EXPECT_EQ(field({.ratio = 1.1}), "ratio");
  EXPECT_EQ(field({.ratio = std::numeric_limits<double>::quiet_NaN()}), "ratio");
  EXPECT_EQ(field({.per_second = 1001}), "per_second");
  EXPECT_EQ(field({.capacity = 1}), "capacity");
  EXPECT_EQ(field({}), "accepted");
}

}  // namespace
