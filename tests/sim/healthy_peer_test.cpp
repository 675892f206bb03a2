// SPDX-License-Identifier: BSL-1.0
//
// A server that is slow but well is never taken for a dead one.
#include <string>

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/client.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;
using redoubt::testing::world;

/// Five minutes of calls, some close together, some with silence before them that is longer than the ping's
/// interval.
asio::awaitable<int> call_for_five_minutes(world& w, client& redis) {
  timer pause(w.get_executor());
  auto const end = w.now() + 5min;
  int answered = 0;
  for (int i = 0; w.now() < end; ++i) {
    auto const got = co_await redis.async_call(command("ECHO", i));
    EXPECT_TRUE(got) << "call " << i << ": " << got.error();
    answered += got ? 1 : 0;
    auto const until = w.now() + (i % 4 == 0 ? duration(7s) : duration(30ms));
    (void)co_await pause.async_wait_until(until, asio::as_tuple(asio::use_awaitable));
  }
  co_return answered;
}

TEST(healthy_peer, C27_that_takes_400_ms_is_never_retired_in_five_minutes) {
  world w(27);
  w.network().latency_min = w.network().latency_max = 200ms;
  client_options options{.url = "redis://redis:6379"};
  options.timeouts = {.connect = 2s, .attempt = 600ms, .call = 3s};
  client redis(w.get_executor(), options);
  EXPECT_GT(w.run(call_for_five_minutes(w, redis)), 100);
  auto const s = redis.snapshot();
  EXPECT_EQ(s.readied, 1u);
  EXPECT_EQ(s.lost, 0u);
  EXPECT_EQ(s.expired, 0u);
  EXPECT_EQ(s.discarded_replies, 0u);
}

/// Calls at random times for half a minute; a reply that is not the call's own is counted.
asio::awaitable<int> call_at_random(world& w, client& redis, random_source& random, int& answered) {
  timer pause(w.get_executor());
  int wrong = 0;
  auto const end = w.now() + 30s;
  for (int i = 0; w.now() < end; ++i) {
    auto const got = co_await redis.async_call(command("ECHO", i), {.budget = 100ms});
    if (got) {
      ++answered;
      wrong += got->as_string() == std::to_string(i) ? 0 : 1;
    }
    auto const until = w.now() + duration(static_cast<duration::rep>(random.below(400'000'000)));
    (void)co_await pause.async_wait_until(until, asio::as_tuple(asio::use_awaitable));
  }
  co_return wrong;
}

TEST(healthy_peer, C04_the_answer_to_a_health_check_is_never_the_value_of_a_call) {
  world w(4);
  random_source random(4);
  client_options options{.url = "redis://redis:6379"};
  options.timeouts = {.connect = 2s, .attempt = 600ms, .call = 3s};
  options.reconnect.ping_interval = 50ms;
  client redis(w.get_executor(), options);
  // Each reply takes up to 200 ms, so many calls end before theirs.
  using fault = redoubt::testing::fake_server::fault;
  for (int i = 0; i < 2000; ++i) {
    w.redis()->inject({.what = fault::kind::delay,
                       .delay = duration(static_cast<duration::rep>(random.below(200'000'000)))});
  }
  int answered = 0;
  EXPECT_EQ(w.run(call_at_random(w, redis, random, answered)), 0);
  auto const s = redis.snapshot();
  EXPECT_GT(w.redis()->count("PING"), 50u) << "the health check has to be at work";
  EXPECT_GT(s.discarded_replies, 10u);
  EXPECT_GT(answered, 20);
  EXPECT_EQ(s.readied, 1u);
  EXPECT_EQ(s.lost, 0u);
}

}  // namespace
