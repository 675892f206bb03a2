// SPDX-License-Identifier: BSL-1.0
//
// cache_aside: malformed values, invalidation, printing, options.
#include "cache_aside_policy_rig.hpp"

namespace {

struct cache_aside_policy_rules : cache_aside_policy {};

TEST_F(cache_aside_policy_rules, C101_a_malformed_value_is_a_miss_and_is_overwritten) {
  using numbers = cache_aside<int, int, test::stub_client>;
  remember();
  stored = "forty-two";
  numbers c(redis, [](int const& key, deadline) -> asio::awaitable<int> { co_return key * 2; },
            {.key = "n:", .ttl = 1s, .events = &events});
  auto const ask = [](numbers& n) -> asio::awaitable<outcome<int>> {
    auto out = co_await n.get(21);
    co_return out;
  };
  auto const first = world.run(ask(c));
  EXPECT_EQ(first.value(), 42);
  EXPECT_EQ(first.origin(), origin::loaded);
  EXPECT_FALSE(first.degraded());
  EXPECT_EQ(stored, "42");
  EXPECT_EQ(redis.seen[0][1], "n:21");
  EXPECT_EQ(world.run(ask(c)).origin(), origin::cached);
  EXPECT_EQ(c.snapshot().malformed, 1u);
  EXPECT_EQ(events.count(event_kind::cache_value_malformed), 1u);
}

TEST_F(cache_aside_policy_rules, invalidate_removes_the_entry_or_says_why_not) {
  remember();
  auto& c = make();
  (void)get(c);
  auto const drop = [](cache& from) -> asio::awaitable<result<bool>> {
    auto out = co_await from.invalidate("A-1");
    co_return out;
  };
  EXPECT_TRUE(world.run(drop(c)).value());
  EXPECT_EQ(redis.seen.back(), (words{"DEL", "price:A-1"}));
  EXPECT_FALSE(world.run(drop(c)).value());
  EXPECT_EQ(get(c).origin(), origin::loaded);
  redis.on_call = [](words const&) { return test::silence(); };
  auto const failed = world.run(drop(c));
  EXPECT_EQ(failed.error().code, errc::deadline_exceeded);
  EXPECT_EQ(failed.error().effect, effect::unknown);
}

TEST_F(cache_aside_policy_rules, outcomes_print_as_one_sentence) {
  auto& c = make();
  redis.on_call = [](words const&) { return test::fails(errc::connection_refused); };
  std::ostringstream text;
  text << get(c);
  EXPECT_EQ(text.str(), "loaded, degraded: connection refused while queued: it was not executed");
}

TEST_F(cache_aside_policy_rules, options_name_the_bad_field) {
  auto const field = [this](cache::options o) -> std::string {
    try {
      make(std::move(o));
      made.reset();
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.key = "k", .ttl = 0s}), "ttl");
  EXPECT_EQ(field({.key = "k", .ttl = -1s}), "ttl");
  EXPECT_EQ(field({.key = "k", .ttl = 1s, .ttl_spread = 1.01}), "ttl_spread");
  EXPECT_EQ(field({.key = "k", .ttl = 1s, .ttl_spread = -0.1}), "ttl_spread");
  EXPECT_EQ(field({.key = "k", .ttl = 1s, .load_timeout = 0ms}), "load_timeout");
  EXPECT_EQ(field({.key = "k", .ttl = 1ms, .ttl_spread = 1}), "accepted");
}

}  // namespace
