// SPDX-License-Identifier: BSL-1.0
//
// A server that is slow but well is never taken for a dead one.
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

}  // namespace
