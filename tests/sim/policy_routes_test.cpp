// SPDX-License-Identifier: BSL-1.0
//
// The policies over the real client, in a simulated world whose server runs the real scripts.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/policy/admission.hpp>
#include <redoubt/policy/cache_aside.hpp>
#include <redoubt/policy/rate_limiter.hpp>
#include <redoubt/policy/retrying.hpp>
#include <redoubt/policy/write_probe.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace redoubt;
using namespace std::chrono_literals;

client_options plain() { return {.url = "redis://redis:6379", .key_prefix = "shop:"}; }

struct policy_routes : ::testing::Test {
  redoubt::testing::world world{7};
  client redis{world.get_executor(), plain()};

  [[nodiscard]] redoubt::testing::fake_server& server() { return world.redis().server(); }

  /// How long something took in virtual time.
  duration timed(std::function<void()> const& what) {
    auto const start = world.now();
    what();
    return world.now() - start;
  }
};

// --- catalog -----------------------------------------------------------------------------------------------

using cache = cache_aside<std::string, std::string>;

asio::awaitable<outcome<std::string>> get(cache& c) {
  auto out = co_await c.get("A-1");
  co_return out;
}

TEST_F(policy_routes, A_24_A_25_two_requests_one_load_and_a_paused_redis_sends_the_read_to_the_database) {
  int loads = 0;
  cache c(redis,
          [&](std::string const&, deadline) -> asio::awaitable<std::string> {
            ++loads;
            co_return "12.50";
          },
          {.key = "price:", .ttl = 60s});
  EXPECT_EQ(world.run(get(c)).origin(), origin::loaded);
  EXPECT_EQ(world.run(get(c)).origin(), origin::cached);
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(server().get("shop:price:A-1", world.now()), "12.50");
  auto const ttl = server().ttl("shop:price:A-1", world.now());
  ASSERT_TRUE(ttl);
  EXPECT_LE(*ttl, 60s);
  EXPECT_GT(*ttl, 59s);

  world.redis().pause();
  std::optional<outcome<std::string>> got;
  auto const took = timed([&] { got = world.run(get(c)); });
  EXPECT_EQ(got->value(), "12.50");
  EXPECT_EQ(got->origin(), origin::loaded);
  EXPECT_TRUE(got->degraded());
  EXPECT_EQ(loads, 2);
  EXPECT_LE(took, redis.call_timeout() + 1ms) << "A-22: no second wait for a write";

  world.redis().resume();
  world.run_for(100ms);
  EXPECT_EQ(world.run(get(c)).origin(), origin::cached) << "what was cached before is still there";
}

TEST_F(policy_routes, A_23_C101_a_full_server_still_serves_reads_and_costs_no_request) {
  cache c(redis, [](std::string const&, deadline) -> asio::awaitable<std::string> { co_return "12.50"; },
          {.key = "price:", .ttl = 60s});
  world.redis().fill_memory();
  auto const got = world.run(get(c));
  EXPECT_EQ(got.value(), "12.50");
  EXPECT_EQ(got.why_degraded().server, server_errc::oom);
  EXPECT_EQ(c.snapshot().write_failures, 1u);
}

// --- login -------------------------------------------------------------------------------------------------

using limiter = rate_limiter<fixed_window, fail_closed>;

asio::awaitable<decision<fail_closed>> admit(limiter& l, std::string id) {
  auto out = co_await l.admit(id);
  co_return out;
}

TEST_F(policy_routes, A_34_eight_concurrent_attempts_admit_five_in_the_real_script) {
  limiter l(redis, {.key = "login:", .limit = 5, .window = 60s});
  int admitted = 0;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    l.admit("ann", {}, [&](decision<fail_closed> d) {
      admitted += d.verdict() == verdict::admitted;
      refused += d.verdict() == verdict::refused;
    });
  }
  ASSERT_TRUE(world.run_until([&] { return admitted + refused == 8; }));
  EXPECT_EQ(admitted, 5);
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(server().get("shop:login:ann", world.now()), "8") << "A-31: prefix, key and id";
}

TEST_F(policy_routes, A_28_A_30_C108_refused_attempts_do_not_prolong_the_window) {
  limiter l(redis, {.key = "login:", .limit = 2, .window = 10s});
  auto const start = world.now();
  auto last = duration::max();
  for (int i = 0; i < 9; ++i) {
    auto const d = world.run(admit(l, "ann"));
    EXPECT_EQ(d.verdict(), i < 2 ? verdict::admitted : verdict::refused);
    auto const left = server().ttl("shop:login:ann", world.now());
    ASSERT_TRUE(left);
    EXPECT_LT(*left, last);
    EXPECT_LE(*left, 10s);
    if (i >= 2) {
      EXPECT_GE(d.retry_after(), 1ms);
      EXPECT_NEAR(std::chrono::duration<double>(d.retry_after()).count(),
                  std::chrono::duration<double>(start + 10s - world.now()).count(), 0.01);
    }
    last = *left;
    world.run_for(1s);
  }
  world.run_for(start + 10s + 10ms - world.now());
  EXPECT_EQ(world.run(admit(l, "ann")).verdict(), verdict::admitted);
}

TEST_F(policy_routes, C107_a_counter_without_a_life_is_repaired) {
  limiter l(redis, {.key = "login:", .limit = 5, .window = 60s});
  server().set("shop:login:ann", "99", world.now());
  EXPECT_FALSE(server().ttl("shop:login:ann", world.now()));
  EXPECT_EQ(world.run(admit(l, "ann")).verdict(), verdict::refused);
  auto const repaired = server().ttl("shop:login:ann", world.now());
  ASSERT_TRUE(repaired);
  EXPECT_LE(*repaired, 60s);
  world.run_for(60s + 10ms);
  EXPECT_EQ(world.run(admit(l, "ann")).verdict(), verdict::admitted);
}

TEST_F(policy_routes, C107_a_counter_from_a_longer_window_ends_with_the_new_one) {
  limiter l(redis, {.key = "login:", .limit = 5, .window = 60s});
  server().set("shop:login:ann", "99", world.now(), 24h);
  EXPECT_EQ(world.run(admit(l, "ann")).retry_after(), 60s);
  world.run_for(60s + 10ms);
  EXPECT_EQ(world.run(admit(l, "ann")).verdict(), verdict::admitted);
}

TEST_F(policy_routes, C116_a_script_that_is_gone_is_sent_again_and_counts_once) {
  limiter l(redis, {.key = "login:", .limit = 5, .window = 60s});
  EXPECT_EQ(world.run(admit(l, "ann")).remaining(), 4u);
  world.redis().flush_scripts();
  EXPECT_EQ(world.run(admit(l, "ann")).remaining(), 3u);
  EXPECT_EQ(server().get("shop:login:ann", world.now()), "2");
}

TEST_F(policy_routes, A_32_A_35_C114_an_outage_is_unavailable_within_the_limit_and_never_counted_twice) {
  limiter l(redis, {.key = "login:", .limit = 5, .window = 60s});
  (void)world.run(admit(l, "ann"));
  world.redis().pause();
  for (int i = 0; i < 20; ++i) {
    std::optional<decision<fail_closed>> d;
    auto const took = timed([&] { d = world.run(admit(l, "ann")); });
    EXPECT_EQ(d->verdict(), verdict::unavailable);
    EXPECT_LE(took, l.worst_case() + 1ms);
  }
  world.redis().resume();
  world.run_for(1s);
  auto const counted = std::stoi(server().get("shop:login:ann", world.now()).value());
  EXPECT_LE(counted, 2) << "only the attempt that was under way when the server froze can have counted";
  world.redis().become_replica();
  EXPECT_EQ(world.run(admit(l, "ann")).error().server, server_errc::readonly);
  EXPECT_EQ(l.snapshot().refused, 0u);
  EXPECT_EQ(l.snapshot().unavailable, 21u);
}

// --- payment -----------------------------------------------------------------------------------------------

using payment = admission<fail_closed>;

asio::awaitable<ticket<fail_closed>> enter(payment& p) {
  auto out = co_await p.enter("7");
  co_return out;
}

TEST_F(policy_routes, A_37_C118_the_entry_is_made_with_its_life_in_one_command) {
  payment p(redis, {.key = "payment:", .hold = 30s});
  EXPECT_EQ(world.run(enter(p)).verdict(), verdict::admitted);
  EXPECT_EQ(world.run(enter(p)).verdict(), verdict::refused);
  auto const ttl = server().ttl("shop:payment:7", world.now());
  ASSERT_TRUE(ttl);
  EXPECT_LE(*ttl, 30s);
  world.run_for(30s + 10ms);
  EXPECT_EQ(world.run(enter(p)).verdict(), verdict::admitted);
}

TEST_F(policy_routes, A_38_C124_no_outage_admits) {
  payment p(redis, {.key = "payment:", .hold = 30s});
  auto& it = world.redis();
  struct outage {
    char const* name;
    std::function<void()> begin, end;
  };
  std::vector<outage> const outages{
      {"replica", [&] { it.become_replica(); }, [&] { it.become_primary(); }},
      {"full", [&] { it.fill_memory(); }, [&] { it.free_memory(); }},
      {"loading", [&] { it.start_loading(); }, [&] { it.finish_loading(); }},
      {"paused", [&] { it.pause(); }, [&] { it.resume(); }},
      {"killed", [&] { it.kill(); }, [&] { it.restart(); }},
  };
  for (auto const& o : outages) {
    SCOPED_TRACE(o.name);
    o.begin();
    std::optional<ticket<fail_closed>> t;
    auto const took = timed([&] { t = world.run(enter(p)); });
    EXPECT_EQ(t->verdict(), verdict::unavailable) << *t;
    EXPECT_LE(took, p.worst_case() + 1ms);
    o.end();
    world.run_for(31s);
  }
  EXPECT_EQ(p.snapshot().admitted, 0u);
}

TEST_F(policy_routes, C120_a_lost_reply_is_unavailable_and_the_entry_keeps_repeats_out) {
  payment p(redis, {.key = "payment:", .hold = 30s});
  redoubt::testing::fake_server::fault lost;
  lost.command = "SET";
  lost.what = redoubt::testing::fake_server::fault::kind::reset_after_execution;
  server().inject(lost);
  auto const first = world.run(enter(p));
  EXPECT_EQ(first.verdict(), verdict::unavailable);
  EXPECT_EQ(first.error().effect, effect::unknown);
  EXPECT_EQ(first.idempotency_key(), "");
  EXPECT_TRUE(server().exists("shop:payment:7", world.now()));
  world.run_for(1s);
  EXPECT_EQ(world.run(enter(p)).verdict(), verdict::refused);
  world.run_for(30s + 10ms);
  EXPECT_EQ(world.run(enter(p)).verdict(), verdict::admitted);
}

// --- health ------------------------------------------------------------------------------------------------

asio::awaitable<probe_report> look(write_probe<>& p) {
  auto out = co_await p.report();
  co_return out;
}

TEST_F(policy_routes, A_45_C_02_C127_the_probe_tells_the_states_of_a_server_apart) {
  write_probe<> p(redis, {.key = "health:write"});
  auto& it = world.redis();
  auto& s = server();
  constexpr auto yes = capability::yes;
  constexpr auto no = capability::no;
  struct state {
    char const* name;
    std::function<void()> begin, end;
    bool answers;
    capability reads, writes;
    char const* cause;
  };
  std::vector<state> const states{
      {"primary", [] {}, [] {}, true, yes, yes, ""},
      {"replica", [&] { it.become_replica(); }, [&] { it.become_primary(); }, true, yes, no, "READONLY"},
      {"full", [&] { it.fill_memory(); }, [&] { it.free_memory(); }, true, yes, no, "OOM"},
      {"replicas", [&] { s.too_few_replicas(true); }, [&] { s.too_few_replicas(false); }, true, yes, no,
       "NOREPLICAS"},
      {"snapshot", [&] { s.fail_snapshots(true); }, [&] { s.fail_snapshots(false); }, true, yes, no,
       "MISCONF"},
      {"cluster", [&] { s.cluster_down(true); }, [&] { s.cluster_down(false); }, true, no, no, "CLUSTERDOWN"},
      {"writes paused", [&] { it.pause_writes(5s); }, [] {}, true, yes, no, "deadline_exceeded"},
      {"loading", [&] { it.start_loading(); }, [&] { it.finish_loading(); }, true, no, no, "LOADING"},
      {"busy", [&] { s.start_busy(); }, [&] { s.finish_busy(); }, true, no, no, "BUSY"},
      {"paused", [&] { it.pause(); }, [&] { it.resume(); }, false, no, no, "deadline_exceeded"},
  };
  for (auto const& one : states) {
    SCOPED_TRACE(one.name);
    ASSERT_TRUE(world.run(look(p)).healthy());
    one.begin();
    std::optional<probe_report> r;
    auto const took = timed([&] { r = world.run(look(p)); });
    EXPECT_EQ(r->answers, one.answers) << *r;
    EXPECT_EQ(r->reads, one.reads) << *r;
    EXPECT_EQ(r->writes, one.writes) << *r;
    EXPECT_EQ(r->cause_text(), one.cause) << *r;
    EXPECT_LE(took, p.worst_case() + 1ms);
    one.end();
    world.run_for(10s);
  }
  it.kill();
  auto const killed = world.run(look(p));
  EXPECT_FALSE(killed.answers);
  EXPECT_EQ(killed.writes, no);
}

TEST_F(policy_routes, A_47_a_key_that_may_not_be_written_is_misconfigured) {
  server().add_user({.name = "app", .password = "pw", .key_prefix = "shop:app:"});
  client limited(world.get_executor(), {.url = "redis://app:pw@redis:6379", .key_prefix = "shop:"});
  write_probe<> mine(limited, {.key = "app:health"});
  write_probe<> foreign(limited, {.key = "health:write"});
  EXPECT_TRUE(world.run(look(mine)).healthy());
  auto const r = world.run(look(foreign));
  EXPECT_TRUE(r.answers);
  EXPECT_EQ(r.writes, capability::misconfigured);
  EXPECT_EQ(r.cause_text(), "NOPERM");
}

TEST_F(policy_routes, A_46_the_probe_leaves_a_small_key_with_a_short_life) {
  write_probe<> p(redis, {.key = "health:write"});
  EXPECT_TRUE(world.run(look(p)).healthy());
  EXPECT_EQ(server().get("shop:health:write", world.now()).value().size(), 2u);
  EXPECT_LE(server().ttl("shop:health:write", world.now()).value(), 60s);
}

// --- waits -------------------------------------------------------------------------------------------------

asio::awaitable<result<reply>> read(retrying<client>& c) {
  auto out = co_await c.async_call(command("GET", "shop:price:A-1"));
  co_return out;
}

TEST_F(policy_routes, A_06_one_attempt_two_retries_and_a_total_limit_on_a_frozen_server) {
  retrying<client> once(redis, {});
  retrying<client> thrice(redis, {.retry = {.retries = 2}, .calls = repeat::idempotent, .seed = 1});
  retrying<client> capped(redis,
                          {.retry = {.retries = 2, .total = 150ms}, .calls = repeat::idempotent, .seed = 1});
  ASSERT_TRUE(world.run(read(once)));
  world.redis().pause();
  auto const one = timed([&] { EXPECT_FALSE(world.run(read(once))); });
  EXPECT_GE(one, 100ms);
  EXPECT_LE(one, 102ms);
  auto const three = timed([&] { EXPECT_FALSE(world.run(read(thrice))); });
  EXPECT_GE(three, 300ms);
  EXPECT_LE(three, 335ms);
  auto const bounded = timed([&] { EXPECT_FALSE(world.run(read(capped))); });
  EXPECT_GE(bounded, 145ms);
  EXPECT_LE(bounded, 152ms);
}

}  // namespace
