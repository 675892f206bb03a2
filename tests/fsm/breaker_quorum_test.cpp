// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_quorum.hpp>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::breaker_quorum;
using redoubt::breaker_quorum_options;
using redoubt::breaker_report;
using redoubt::duration;

redoubt::time_point const start{1h};

TEST(breaker_quorum, C95_who_is_believed_and_for_how_long) {
  struct row {
    char const* what;
    std::uint32_t nodes;
    std::vector<breaker_report> reports;
    std::optional<duration> lasts;  // from the time of asking; none: no opinion
    std::uint32_t others;
  };
  duration const none{};
  std::vector<row> const rows{
      {"nobody", 2, {}, std::nullopt, 0},
      {"one other is not enough", 2, {{"a", 1s}}, std::nullopt, 1},
      {"two others", 2, {{"a", 1s}, {"b", 2s}}, 8s, 2},
      {"in any order", 2, {{"b", 2s}, {"a", 1s}}, 8s, 2},
      {"one that says it twice is one", 2, {{"a", 1s}, {"a", 2s}}, std::nullopt, 1},
      {"and its youngest word counts", 2, {{"a", 9s}, {"b", 1s}, {"a", 3s}}, 7s, 2},
      {"this node is not another", 2, {{"me", none}, {"a", none}}, std::nullopt, 1},
      {"nor a third", 2, {{"me", none}, {"a", 1s}, {"b", 1s}}, 9s, 2},
      {"old news", 2, {{"a", 1s}, {"b", 10s}}, std::nullopt, 1},
      {"news just before they are old", 2, {{"a", 1s}, {"b", 10s - 1ms}}, 1ms, 2},
      {"news from the future: a clock went back", 2, {{"a", 1s}, {"b", -1ms}}, std::nullopt, 1},
      {"the oldest that is needed decides", 2, {{"a", 1s}, {"b", 4s}, {"c", 9s}}, 6s, 3},
      {"a larger quorum", 3, {{"a", 1s}, {"b", 4s}}, std::nullopt, 2},
      {"a larger quorum, reached", 3, {{"a", 1s}, {"b", 4s}, {"c", 9s}}, 1s, 3},
      {"the longest ages there are", 2, {{"a", duration::max()}, {"b", duration::min()}}, std::nullopt, 0},
  };
  for (auto const& r : rows) {
    SCOPED_TRACE(r.what);
    breaker_quorum q({.nodes = r.nodes, .window = 10s}, "me");
    auto const until = q.on_reports(r.reports, start);
    EXPECT_EQ(until.has_value(), r.lasts.has_value());
    if (until && r.lasts) {
      EXPECT_EQ(*until - start, *r.lasts);
    }
    EXPECT_EQ(q.snapshot().others, r.others);
    EXPECT_EQ(q.snapshot().quorums, r.lasts ? 1u : 0u);
  }
}

TEST(breaker_quorum, C95_news_are_used_once) {
  breaker_quorum q({.nodes = 2, .window = 10s}, "me");
  std::vector<breaker_report> const first{{"a", 1s}, {"b", 2s}};
  ASSERT_TRUE(q.on_reports(first, start));
  ASSERT_TRUE(q.on_reports(first, start)) << "as long as nothing was done about it";
  q.settle(start + 1ms);
  std::vector<breaker_report> const again{{"a", 3s}, {"b", 4s}};
  EXPECT_FALSE(q.on_reports(again, start + 2s)) << "the same news, two seconds later";
  EXPECT_EQ(q.snapshot().others, 0u);
  std::vector<breaker_report> const one_more{{"a", 3s}, {"b", 4s}, {"c", 1s}};
  EXPECT_FALSE(q.on_reports(one_more, start + 2s)) << "one node with fresh news";
  std::vector<breaker_report> const fresh{{"a", 1s}, {"b", 4s}, {"c", 1s}};
  EXPECT_TRUE(q.on_reports(fresh, start + 2s)) << "one of the first again, and a third one";
  q.settle(start);
  EXPECT_FALSE(q.on_reports(again, start + 2s)) << "it never goes back";
}

TEST(breaker_quorum, options_name_the_bad_field) {
  auto const field = [](breaker_quorum_options o) -> std::string {
    try {
      breaker_quorum q(o, "me");
    } catch (redoubt::option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({}), "accepted");
  EXPECT_EQ(field({.nodes = 1}), "nodes");
  EXPECT_EQ(field({.nodes = 101}), "nodes");
  EXPECT_EQ(field({.window = 999ms}), "window");
  EXPECT_EQ(field({.window = 1h + 1ms}), "window");
}

}  // namespace
