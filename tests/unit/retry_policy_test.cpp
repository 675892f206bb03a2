// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/retry.hpp>
#include <redoubt/policy/retrying.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/policy/cache_aside.hpp>

#include "stub_client.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;
using test::words;

using client_type = retrying<test::stub_client>;
static_assert(redis_client<client_type>);
static_assert(repeats_calls<client_type> && !repeats_calls<test::stub_client>);

asio::awaitable<result<reply>> call(client_type& c, command cmd, call_options o = {}) {
  auto out = co_await c.async_call(std::move(cmd), o);
  co_return out;
}

struct retry_policy : ::testing::Test {
  test::virtual_context world;
  test::stub_client redis{world.executor()};  // silent: every attempt takes 100 ms
};

TEST_F(retry_policy, A_06_one_attempt_two_retries_and_the_total_limit) {
  client_type once(redis, {});
  auto const one = world.run(call(once, command("GET", "k")));
  EXPECT_EQ(world.elapsed(), 100ms);
  EXPECT_EQ(one.error().attempts, 1);
  EXPECT_EQ(redis.seen.size(), 1u) << "A-05: no retry unless asked for";

  auto start = world.elapsed();
  client_type thrice(redis, {.retry = {.retries = 2}, .calls = repeat::idempotent, .seed = 1});
  auto const three = world.run(call(thrice, command("GET", "k")));
  auto const took = world.elapsed() - start;
  EXPECT_GE(took, 300ms);
  EXPECT_LE(took, 330ms) << "two pauses of at most 10 and 20 ms";
  EXPECT_EQ(three.error().attempts, 3);
  EXPECT_EQ(three.error().elapsed, took);
  EXPECT_EQ(three.error().effect, effect::unknown);
  EXPECT_EQ(thrice.snapshot().attempts, 3u);
  EXPECT_EQ(thrice.snapshot().none_left, 1u);

  start = world.elapsed();
  client_type capped(redis,
                     {.retry = {.retries = 2, .total = 150ms}, .calls = repeat::idempotent, .seed = 1});
  auto const bounded = world.run(call(capped, command("GET", "k")));
  EXPECT_EQ(world.elapsed() - start, 150ms);
  EXPECT_EQ(bounded.error().attempts, 2);
  EXPECT_EQ(capped.call_timeout(), 150ms);
}

TEST_F(retry_policy, C31_a_lost_reply_is_not_repeated_unless_the_command_is_declared_idempotent) {
  client_type c(redis, {.retry = {.retries = 2}});
  EXPECT_FALSE(world.run(call(c, command("INCR", "k"))));
  EXPECT_EQ(redis.seen.size(), 1u);
  EXPECT_EQ(c.snapshot().not_repeatable, 1u);

  auto const declared = [](client_type& by) -> asio::awaitable<result<reply>> {
    auto out = co_await by.async_idempotent(idempotent_command("SET", "k", "v"));
    co_return out;
  };
  EXPECT_FALSE(world.run(declared(c)));
  EXPECT_EQ(redis.seen.size(), 4u);
}

TEST_F(retry_policy, a_set_with_options_has_to_be_declared) {
  EXPECT_THROW(idempotent_command("SET", "k", "v", "NX"), std::invalid_argument);
  EXPECT_NO_THROW(idempotent_command("SETEX", "k", 10, "v"));
  client_type c(redis, {.retry = {.retries = 1}});
  auto const declared = [](client_type& by) -> asio::awaitable<result<reply>> {
    auto out = co_await by.async_idempotent(idempotent_command::declared(command("SET", "k", "v", "EX", 10)));
    co_return out;
  };
  EXPECT_FALSE(world.run(declared(c)));
  EXPECT_EQ(redis.seen.size(), 2u);
}

TEST_F(retry_policy, a_refused_connection_is_tried_again_and_the_value_comes_through) {
  int calls = 0;
  redis.on_call = [&](words const&) {
    return ++calls < 3 ? test::fails(errc::connection_refused) : test::text("v");
  };
  client_type c(redis, {.retry = {.retries = 3}});
  auto const got = world.run(call(c, command("GET", "k")));
  EXPECT_EQ(got.value().as_string(), "v");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(c.snapshot().succeeded, 1u);
  EXPECT_EQ(c.snapshot().attempts, 3u);
}

TEST_F(retry_policy, C46_our_own_refusal_ends_at_once_with_its_cause) {
  redis.on_call = [](words const&) { return test::fails(errc::queue_full); };
  client_type c(redis, {.retry = {.retries = 3}, .calls = repeat::idempotent});
  auto const got = world.run(call(c, command("GET", "k")));
  EXPECT_EQ(got.error().code, errc::queue_full);
  EXPECT_EQ(world.elapsed(), 0ms);
  EXPECT_EQ(redis.seen.size(), 1u);
}

TEST_F(retry_policy, a_budget_and_a_deadline_bound_all_attempts_together) {
  client_type c(redis, {.retry = {.retries = 9}, .calls = repeat::idempotent});
  call_options o;
  o.budget = 250ms;
  EXPECT_FALSE(world.run(call(c, command("GET", "k"), o)));
  EXPECT_EQ(world.elapsed(), 250ms);
  o.by = world.in(120ms);
  auto const start = world.elapsed();
  EXPECT_FALSE(world.run(call(c, command("GET", "k"), o)));
  EXPECT_EQ(world.elapsed() - start, 120ms);
  o.by = deadline(world.now());
  auto const none = world.run(call(c, command("GET", "k"), o));
  EXPECT_EQ(none.error().code, errc::retries_exhausted);
  EXPECT_EQ(none.error().effect, effect::none);
}

TEST_F(retry_policy, A_12_cancellation_ends_an_attempt_or_a_pause_and_nothing_follows) {
  client_type c(redis, {.retry = {.retries = 5, .total = 10s, .pause = {.base = 1s, .cap = 1s}},
                        .calls = repeat::idempotent,
                        .seed = 3});
  for (auto when : {50ms, 101ms}) {
    auto const sent = redis.seen.size();
    asio::cancellation_signal signal;
    std::optional<result<reply>> got;
    c.async_call(command("GET", "k"), {}, asio::bind_cancellation_slot(signal.slot(), [&](result<reply> r) {
                   got.emplace(std::move(r));
                 }));
    world.run_for(when);
    ASSERT_FALSE(got);
    signal.emit(asio::cancellation_type::terminal);
    world.settle();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->error().code, errc::cancelled);
    EXPECT_EQ(got->error().effect, effect::unknown);
    world.run();
    EXPECT_EQ(redis.seen.size(), sent + 1);
  }
}

TEST_F(retry_policy, a_script_is_repeated_only_when_it_was_not_executed) {
  client_type c(redis, {.retry = {.retries = 2}, .calls = repeat::idempotent});
  script const s("return 1");
  auto const eval = [&s](client_type& by) -> asio::awaitable<result<reply>> {
    keys k("a");
    args a(1);
    auto out = co_await by.async_eval(s, std::move(k), std::move(a));
    co_return out;
  };
  EXPECT_FALSE(world.run(eval(c)));
  EXPECT_EQ(redis.seen.size(), 1u);
  redis.on_call = [](words const&) { return test::fails(errc::connection_refused); };
  EXPECT_FALSE(world.run(eval(c)));
  EXPECT_EQ(redis.seen.size(), 4u);
}

TEST_F(retry_policy, a_cache_can_stand_on_it) {
  int gets = 0;
  redis.on_call = [&](words const& w) {
    if (w[0] == "GET" && ++gets == 1) return test::fails(errc::connection_lost, effect::unknown);
    return w[0] == "GET" ? test::text("cached") : test::ok();
  };
  client_type c(redis, {.retry = {.retries = 1, .total = 150ms}, .calls = repeat::idempotent});
  cache_aside<std::string, std::string, client_type> cache(
      c, [](std::string const&, deadline) -> asio::awaitable<std::string> { co_return "loaded"; },
      {.key = "k:", .ttl = 1s});
  auto const get = [](auto& from) -> asio::awaitable<outcome<std::string>> {
    auto out = co_await from.get("a");
    co_return out;
  };
  auto const got = world.run(get(cache));
  EXPECT_EQ(got.value(), "cached");
  EXPECT_EQ(cache.worst_case(), 150ms + 500ms + 150ms);
}

failure plain(errc code, effect what) {
  failure f;
  f.code = code;
  f.effect = what;
  return f;
}

TEST_F(retry_policy, the_budget_is_asked_before_the_pause_and_counted_apart) {
  redis.on_call = [](words const&) { return test::fails(errc::connection_refused); };
  retry_budget budget({.ratio = 0, .per_second = 0, .capacity = 3});
  client_type c(
      redis,
      {.retry = {.retries = 2, .total = 1h, .pause = {.base = 1s, .cap = 1s}}, .seed = 5, .budget = &budget});
  EXPECT_FALSE(world.run(call(c, command("GET", "k"))));
  EXPECT_EQ(redis.seen.size(), 3u);
  EXPECT_FALSE(world.run(call(c, command("GET", "k"))));
  EXPECT_EQ(redis.seen.size(), 5u);
  auto const before = world.elapsed();
  auto const got = world.run(call(c, command("GET", "k")));
  EXPECT_EQ(redis.seen.size(), 6u) << "the first attempt needs no token";
  EXPECT_EQ(world.elapsed(), before) << "no pause before the answer";
  EXPECT_EQ(got.error().code, errc::connection_refused);
  EXPECT_EQ(c.snapshot().none_left, 1u);
  EXPECT_EQ(c.snapshot().no_budget, 2u);
  EXPECT_EQ(budget.snapshot().granted, 3u);
  EXPECT_EQ(budget.snapshot().refused, 2u);

  redis.on_call = [](words const&) { return test::ok(); };
  EXPECT_TRUE(world.run(call(c, command("GET", "k"))));
  EXPECT_EQ(budget.snapshot().succeeded, 1u);
}

TEST_F(retry_policy, a_retry_after_a_timeout_costs_double) {
  retry_budget budget({.ratio = 0, .per_second = 0, .capacity = 4});  // redis is silent
  client_type c(redis,
                {.retry = {.retries = 9, .total = 1h}, .calls = repeat::idempotent, .budget = &budget});
  EXPECT_FALSE(world.run(call(c, command("GET", "k"))));
  EXPECT_EQ(redis.seen.size(), 3u);
  EXPECT_EQ(retry_budget::price(plain(errc::deadline_exceeded, effect::none)), 1u)
      << "it cost nobody anything";
  EXPECT_EQ(retry_budget::price(plain(errc::connection_lost, effect::unknown)), 1u);
}

TEST_F(retry_policy, E_03_each_attempt_is_given_its_own_limit) {
  retry again(retry_options{.retries = 2, .total = 1s, .attempt_timeout = 50ms}, 1);
  std::vector<duration> given;
  auto attempt = [&](deadline by) -> asio::awaitable<result<int>> {
    given.push_back(by.left(world.now()));
    result<int> out(plain(errc::connection_refused, effect::none));
    co_return out;
  };
  auto const go = [&](asio::any_io_executor executor, deadline by) -> asio::awaitable<result<int>> {
    auto out = co_await again.run<int>(executor, by, repeat::not_executed, attempt);
    co_return out;
  };
  EXPECT_FALSE(world.run(go(world.executor(), {})));
  EXPECT_EQ(given, std::vector<duration>(3, 50ms));
  EXPECT_FALSE(world.run(go(world.executor(), world.in(20ms))));
  EXPECT_EQ(given.at(3), 20ms);
}

TEST_F(retry_policy, the_guard_repeats_any_operation) {
  retry again(retry_options{.retries = 4}, 1);
  int calls = 0;
  auto attempt = [&calls](deadline) -> asio::awaitable<result<int>> {
    failure f;
    f.code = errc::connection_refused;
    f.effect = effect::none;
    result<int> out(f);
    if (++calls == 3) out = 42;
    co_return out;
  };
  auto const go = [&](asio::any_io_executor executor) -> asio::awaitable<result<int>> {
    auto out = co_await again.run<int>(executor, {}, repeat::not_executed, attempt);
    co_return out;
  };
  EXPECT_EQ(world.run(go(world.executor())).value(), 42);
  EXPECT_EQ(again.snapshot().attempts, 3u);
  EXPECT_EQ(again.worst_case(), 1s);
}

TEST(retry_policy_guard, C100_an_attempt_that_throws_is_a_failure_and_not_repeated) {
  test::virtual_context world;
  retry again({.retries = 3}, 1);
  int attempts = 0;
  auto attempt = [&](deadline) -> asio::awaitable<result<int>> {
    ++attempts;
    throw std::runtime_error("no");
    co_return 1;
  };
  std::optional<result<int>> got;
  again.run<int>(world.executor(), {}, repeat::idempotent, attempt,
                 [&](result<int> r) { got.emplace(std::move(r)); });
  world.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::load_failed);
  EXPECT_EQ(got->error().effect, effect::unknown);
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(again.snapshot().not_repeatable, 1u);
}

TEST(retry_policy_guard, A_12_after_a_cancellation_nothing_is_repeated_whatever_the_attempt_says) {
  test::virtual_context world;
  retry again({.retries = 3, .total = 10s}, 1);
  int attempts = 0;
  auto stubborn = [&](deadline) -> asio::awaitable<result<int>> {
    ++attempts;
    timer clock(world.executor());
    for (int i = 0; i < 2; ++i) {
      boost::system::error_code ignored;
      co_await clock.async_wait_until(world.now() + 50ms, asio::redirect_error(asio::use_awaitable, ignored));
    }
    failure f;
    f.code = errc::connection_lost;
    f.effect = effect::none;
    result<int> out(f);
    co_return out;
  };
  asio::cancellation_signal stop;
  std::optional<result<int>> got;
  again.run<int>(
      world.executor(), {}, repeat::idempotent, stubborn,
      asio::bind_cancellation_slot(stop.slot(), [&](result<int> r) { got.emplace(std::move(r)); }));
  world.run_for(10ms);
  stop.emit(asio::cancellation_type::terminal);
  world.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::cancelled);
  EXPECT_EQ(attempts, 1);
}

}  // namespace
