// SPDX-License-Identifier: BSL-1.0
//
// Catalog route: reads, loads, writes, and what the outcome says about them.
#include "cache_aside_policy_rig.hpp"

namespace {

TEST_F(cache_aside_policy, A_16_a_hit_does_not_call_the_loader) {
  remember();
  stored = "12.50";
  auto const got = get(make());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value(), "12.50");
  EXPECT_EQ(got.origin(), origin::cached);
  EXPECT_FALSE(got.degraded());
  EXPECT_EQ(loads, 0);
  EXPECT_EQ(redis.seen, (std::vector<words>{{"GET", "price:A-1"}}));
  EXPECT_EQ(made->snapshot().cached, 1u);
}

TEST_F(cache_aside_policy, A_09_the_clients_prefix_is_put_before_every_key) {
  remember();
  redis.prefix = "shop:";
  (void)get(make());
  ASSERT_EQ(redis.seen.size(), 2u);
  EXPECT_EQ(redis.seen[0][1], "shop:price:A-1");
  EXPECT_EQ(redis.seen[1][1], "shop:price:A-1");
}

TEST_F(cache_aside_policy, A_18_A_22_a_miss_loads_and_writes_with_the_ttl) {
  remember();
  auto const got = get(make());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value(), "db:A-1");
  EXPECT_EQ(got.origin(), origin::loaded);
  EXPECT_FALSE(got.degraded());
  EXPECT_EQ(redis.seen.back(), (words{"SET", "price:A-1", "db:A-1", "PX", "60000"}));
}

TEST_F(cache_aside_policy, A_24_two_requests_need_one_database_read) {
  remember();
  auto& c = make();
  EXPECT_EQ(get(c).origin(), origin::loaded);
  EXPECT_EQ(get(c).origin(), origin::cached);
  EXPECT_EQ(loads, 1);
}

TEST_F(cache_aside_policy, A_17_A_25_C101_every_failed_read_of_an_unavailable_cache_becomes_a_load) {
  auto& c = make();
  std::vector<test::answer> const outages{
      test::silence(),
      test::fails(errc::connection_refused),
      test::fails(errc::connection_lost, effect::unknown),
      test::fails(errc::resolve_failed),
      test::fails(errc::queue_full),
      test::fails(errc::protocol_error, effect::unknown),
      test::says("LOADING Redis is loading the dataset in memory"),
      test::says("BUSY Redis is busy running a script."),
      test::says("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
      test::says("CLUSTERDOWN Hash slot not served"),
  };
  for (auto const& outage : outages) {
    redis.on_call = [&](words const&) { return outage; };
    auto const before = redis.seen.size();
    auto const got = get(c);
    ASSERT_TRUE(got.ok()) << got;
    EXPECT_EQ(got.value(), "db:A-1");
    EXPECT_EQ(got.origin(), origin::loaded);
    EXPECT_TRUE(got.degraded());
    EXPECT_EQ(redis.seen.size(), before + 1) << "A-22: nothing is written after a failed read";
    EXPECT_EQ(events.all.back().kind, event_kind::cache_read_failed);
    EXPECT_EQ(events.all.back().source, "cache_aside");
    EXPECT_EQ(events.all.back().cause.code, got.why_degraded().code);
  }
  EXPECT_EQ(made->snapshot().redis_errors, outages.size());
  EXPECT_EQ(made->snapshot().fallbacks, outages.size());
  EXPECT_EQ(made->snapshot().write_failures, 0u);
}

TEST_F(cache_aside_policy, T_6_mistakes_and_wrong_configuration_do_not_fail_open) {
  auto& c = make();
  for (char const* line :
       {"WRONGTYPE Operation against a key holding the wrong kind of value",
        "NOAUTH Authentication required.", "NOPERM this user has no permissions to run the 'get' command",
        "ERR syntax error"}) {
    redis.on_call = [&](words const&) { return test::says(line); };
    auto const got = get(c);
    EXPECT_FALSE(got.ok());
    EXPECT_EQ(got.problem(), outcome_problem::cache_failed);
    EXPECT_EQ(got.error().code, errc::server_error);
    EXPECT_FALSE(got.busy());
    EXPECT_THROW((void)got.value(), call_error);
  }
  redis.on_call = [](words const&) { return test::number(7); };
  EXPECT_EQ(get(c).error().code, errc::unexpected_reply);
  EXPECT_EQ(loads, 0);
  EXPECT_EQ(made->snapshot().failed, 5u);
}

TEST_F(cache_aside_policy, A_23_a_failed_write_is_reported_and_the_value_returned) {
  redis.on_call = [](words const& w) {
    return w[0] == "GET" ? test::nil()
                         : test::says("OOM command not allowed when used memory > 'maxmemory'.");
  };
  auto const got = get(make());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value(), "db:A-1");
  EXPECT_TRUE(got.degraded());
  EXPECT_EQ(got.why_degraded().server, server_errc::oom);
  EXPECT_EQ(events.count(event_kind::cache_write_failed), 1u);
  EXPECT_EQ(made->snapshot().write_failures, 1u);
  EXPECT_EQ(made->snapshot().loaded, 1u);
}

TEST_F(cache_aside_policy, A_27_a_loaders_failure_reaches_the_caller_unchanged) {
  remember();
  source = [](std::string) -> asio::awaitable<result<std::string>> {
    failure f;
    f.code = errc::resolve_failed;
    f.elapsed = 7ms;
    co_return f;
  };
  auto const got = get(make());
  EXPECT_FALSE(got.ok());
  EXPECT_EQ(got.problem(), outcome_problem::load_failed);
  EXPECT_FALSE(got.busy());
  EXPECT_EQ(got.error().code, errc::resolve_failed);
  EXPECT_EQ(got.error().elapsed, 7ms);
  EXPECT_EQ(redis.count("SET"), 0u);
}

TEST_F(cache_aside_policy, A_27_a_loaders_exception_reaches_the_caller_unchanged) {
  remember();
  auto& c = make();
  source = [](std::string) -> asio::awaitable<result<std::string>> {
    co_await pause(1ms);
    throw std::out_of_range("no such article");
  };
  auto const late = get(c);
  EXPECT_EQ(late.problem(), outcome_problem::load_failed);
  EXPECT_EQ(late.error().code, errc::load_failed);
  EXPECT_NE(late.exception(), nullptr);
  EXPECT_THROW((void)late.value(), std::out_of_range);

  source = [](std::string) -> asio::awaitable<result<std::string>> { throw std::logic_error("at once"); };
  auto const at_once = get(c);
  EXPECT_THROW((void)at_once.value(), std::logic_error);
  EXPECT_EQ(made->snapshot().failed, 2u);
}

TEST_F(cache_aside_policy, A_19_D_25_eight_loads_at_once_and_the_others_wait_for_them) {
  remember();
  int most = 0;
  int now = 0;
  source = [&](std::string key) -> asio::awaitable<result<std::string>> {
    most = std::max(most, ++now);
    co_await pause(100ms);
    --now;
    co_return key;
  };
  auto& c = make();
  std::vector<outcome<std::string>> got(20);
  for (std::size_t i = 0; i < got.size(); ++i) {
    c.get("k" + std::to_string(i), {}, [&got, i](outcome<std::string> o) { got[i] = std::move(o); });
  }
  world.run();
  EXPECT_EQ(most, 8);
  for (auto const& o : got) EXPECT_TRUE(o.ok()) << o;
}

TEST_F(cache_aside_policy, A_20_A_21_D_25_one_limit_covers_the_wait_and_the_load_and_ends_in_refusal) {
  remember();
  source = [](std::string key) -> asio::awaitable<result<std::string>> {
    co_await pause(300ms);
    co_return key;
  };
  bulkhead db{{.name = "db", .slots = 1}};
  auto& c = make({.key = "price:", .ttl = 60s, .load_timeout = 500ms, .slots = &db});
  std::vector<std::pair<outcome<std::string>, duration>> got;
  for (int i = 0; i < 3; ++i) {
    c.get("k" + std::to_string(i), {},
          [&](outcome<std::string> o) { got.emplace_back(std::move(o), world.elapsed()); });
  }
  world.run();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_TRUE(got[0].first.ok());
  EXPECT_EQ(got[0].second, 300ms);
  // The second starts to load after 300 ms and has 200 ms left; the third never gets a slot. Both end at 500
  // ms.
  for (std::size_t i : {1u, 2u}) {
    auto const& o = got[i].first;
    EXPECT_EQ(o.problem(), outcome_problem::busy);
    EXPECT_TRUE(o.busy());
    EXPECT_EQ(got[i].second, 500ms);
    EXPECT_EQ(o.error().group(), failure_class::saturated);
    EXPECT_TRUE(o.error().code == errc::load_timeout || o.error().code == errc::bulkhead_full);
    EXPECT_EQ(o.error().elapsed, 500ms);
  }
  EXPECT_NE(got[1].first.error().code, got[2].first.error().code);
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(made->snapshot().refused, 2u);
  EXPECT_EQ(events.count(event_kind::load_refused), 2u);
}

TEST_F(cache_aside_policy, A_26_a_full_bulkhead_refuses_the_extra_request_at_once) {
  remember();
  bulkhead db{{.name = "db", .slots = 1, .waiters = 0}};
  auto const held = db.try_acquire();
  auto const got = get(make({.key = "price:", .ttl = 60s, .slots = &db}));
  EXPECT_TRUE(got.busy());
  EXPECT_EQ(got.error().code, errc::bulkhead_full);
  EXPECT_EQ(world.elapsed(), 0ms);
  EXPECT_EQ(loads, 0);
  std::ostringstream text;
  text << got;
  EXPECT_EQ(text.str(), "busy: bulkhead full: db");
}

TEST_F(cache_aside_policy, a_load_that_ignores_its_deadline_keeps_its_slot_until_it_really_ends) {
  remember();
  source = [](std::string key) -> asio::awaitable<result<std::string>> {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await pause(2s);
    co_return key;
  };
  bulkhead db{{.name = "db", .slots = 1, .waiters = 0}};
  auto& c = make({.key = "price:", .ttl = 60s, .slots = &db});
  EXPECT_EQ(get(c).error().code, errc::load_timeout);
  EXPECT_EQ(world.elapsed(), 500ms);
  EXPECT_EQ(db.snapshot().used, 1u);
  EXPECT_EQ(get(c).error().code, errc::bulkhead_full);
  world.run_for(1500ms);
  EXPECT_EQ(db.snapshot().used, 0u);
  EXPECT_EQ(redis.count("SET"), 0u) << "a value that came too late is nobody's";
}

TEST_F(cache_aside_policy, a_slot_is_free_again_when_the_caller_hears_of_the_value) {
  remember();
  bulkhead db{{.name = "db", .slots = 1, .waiters = 0}};
  auto& c = make({.key = "price:", .ttl = 60s, .slots = &db});
  for (int i = 0; i < 5; ++i) {
    auto const got = get(c, "k" + std::to_string(i));
    EXPECT_TRUE(got.ok()) << got;
    stored.reset();
  }
}

TEST_F(cache_aside_policy, A_14_the_worst_case_is_read_and_load_and_write_and_is_kept) {
  redis.attempt_timeout = 150ms;
  redis.on_call = [](words const& w) {
    auto a = test::nil();
    a.after = 149ms;
    return w[0] == "GET" ? a : test::silence();
  };
  source = [](std::string key) -> asio::awaitable<result<std::string>> {
    co_await pause(499ms);
    co_return key;
  };
  auto& c = make();
  EXPECT_EQ(c.worst_case(), 800ms);
  auto const got = get(c);
  EXPECT_TRUE(got.ok());
  EXPECT_TRUE(got.degraded());
  EXPECT_EQ(world.elapsed(), 149ms + 499ms + 150ms);
}

TEST_F(cache_aside_policy, the_callers_deadline_bounds_every_step) {
  auto& c = make();  // Redis is silent
  source = [](std::string key) -> asio::awaitable<result<std::string>> {
    co_await pause(1s);
    co_return key;
  };
  auto const got = get(c, "A-1", world.in(60ms));
  EXPECT_FALSE(got.ok());
  EXPECT_EQ(world.elapsed(), 60ms);

  auto const start = world.elapsed();
  redis.on_call = [](words const&) { return test::nil(); };
  auto const second = get(c, "A-1", world.in(200ms));
  EXPECT_EQ(second.error().code, errc::load_timeout);
  EXPECT_EQ(world.elapsed() - start, 200ms);
  EXPECT_EQ(load_deadlines.back().at(), world.now()) << "the loader is told the deadline";
}

}  // namespace
