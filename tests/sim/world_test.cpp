// SPDX-License-Identifier: BSL-1.0
//
// The client in a simulated world: exact virtual times, one scenario per test.
#include <stdexcept>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/testing/recorder.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace redoubt;
using namespace std::chrono_literals;
using redoubt::testing::world;

client_options plain() { return {.url = "redis://redis:6379"}; }

result<reply> ping(world& w, client& redis) {
  return w.run([](client& c) -> asio::awaitable<result<reply>> {
    co_return co_await c.async_call(command("PING"));
  }(redis));
}

TEST(world_client, takes_the_url_of_production_without_tls_being_linked) {
  world w(1);
  client redis(w.get_executor(), {.url = "rediss://redis:6379"});
  auto const got = ping(w, redis);
  EXPECT_TRUE(got) << got.error();
}

struct provider final : credentials_provider {
  void get(reply done) override { done(credentials{.password = "pw"}); }
};

TEST(world_client, asks_its_provider_for_credentials) {
  world w(1);
  auto options = plain();
  options.credentials = std::make_shared<provider>();
  client redis(w.get_executor(), options);
  auto const got = ping(w, redis);
  ASSERT_FALSE(got) << "the server has no password";
  EXPECT_EQ(got.error().phase, phase::handshake);
  EXPECT_EQ(got.error().command.view(), "PING") << "the caller's command";
  EXPECT_NE(got.error().message().find("AUTH"), std::string::npos) << got.error();
}

TEST(world_client, answers_in_virtual_time) {
  world w(1);
  client redis(w.get_executor(), plain());
  auto const got = w.run([](client& c) -> asio::awaitable<result<reply>> {
    auto set = co_await c.async_call(command("SET", "k", "v"));
    EXPECT_TRUE(set.has_value());
    co_return co_await c.async_call(command("GET", "k"));
  }(redis));
  ASSERT_TRUE(got.has_value()) << got.error();
  EXPECT_EQ(got->as_string(), "v");
}

TEST(world_client, C29_tells_a_sink_that_asks_of_every_call_and_no_other) {
  for (bool const asks : {false, true}) {
    redoubt::testing::recorder events(100, asks);
    world w(1);
    auto options = plain();
    options.events = &events;
    client redis(w.get_executor(), options);
    EXPECT_TRUE(ping(w, redis));
    w.redis().pause();
    EXPECT_FALSE(ping(w, redis));
    EXPECT_EQ(events.count(event_kind::ready), 1u);
    EXPECT_EQ(events.count(event_kind::call_sent), asks ? 2u : 0u);
    EXPECT_EQ(events.count(event_kind::call_finished), asks ? 2u : 0u);
    if (!asks) continue;
    auto const last = events.last(event_kind::call_finished);
    ASSERT_TRUE(last && last->cause && last->call);
    EXPECT_EQ(last->cause->code, errc::deadline_exceeded);
    EXPECT_EQ(last->call->command.view(), "PING");
    EXPECT_EQ(last->call->elapsed, last->cause->elapsed);
    EXPECT_GE(last->call->times.of(phase::read), 99ms);
  }
}

asio::awaitable<int> late_answer() {
  timer clock(co_await asio::this_coro::executor);
  co_await clock.async_wait_until(clock.now() + 5s, asio::use_awaitable);
  co_return 7;
}

TEST(world, a_coroutine_that_misses_its_limit_may_end_later) {
  world w(1);
  EXPECT_THROW((void)w.run(late_answer(), 1s), std::runtime_error);
  EXPECT_EQ(w.run(late_answer()), 7) << "the first one has ended meanwhile";
  EXPECT_THROW(w.run([]() -> asio::awaitable<void> { (void)co_await late_answer(); }(), 1s),
               std::runtime_error);
  w.run_for(10s);
}

TEST(world_client, A_06_one_attempt_on_a_frozen_server_takes_exactly_the_attempt_timeout) {
  world w(1);
  client redis(w.get_executor(), plain());
  w.run([](world& in, client& c) -> asio::awaitable<void> {
    (void)co_await c.async_call(command("PING"));
    in.redis().pause();
    auto const start = in.now();
    auto const got = co_await c.async_call(command("GET", "k"));
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, errc::deadline_exceeded);
    EXPECT_EQ(got.error().effect, effect::unknown);
    EXPECT_EQ(got.error().phase, phase::read);
    EXPECT_GE(in.now() - start, 100ms);
    EXPECT_LE(in.now() - start, 101ms);
  }(w, redis));
}

}  // namespace
