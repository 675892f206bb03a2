// SPDX-License-Identifier: BSL-1.0
//
// Guards are often made before the context and so outlive it: a context that is destroyed with calls at every
// stage leaves nothing behind.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/adaptive_throttle.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/hedge.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>
#include <redoubt/guard/token_bucket.hpp>
#include <redoubt/testing/world.hpp>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

// Even numbers fail at once, and so wait for their next attempt; odd ones work for an hour.
asio::awaitable<result<int>> work(int number, deadline) {
  failure f;
  f.code = errc::connection_refused;
  f.effect = effect::none;
  result<int> out(f);
  if (number % 2 != 0) {
    timer clock(co_await asio::this_coro::executor);
    co_await clock.async_wait_until(clock.now() + 1h, asio::use_awaitable);
    out = number;
  }
  co_return out;
}

struct context_that_dies {
  asio::io_context real;
  redoubt::testing::world simulated;
  void run() {
    real.run_for(5ms);
    simulated.run_for(5ms);
  }
};

TEST(guard_context, C80_one_that_dies_with_calls_at_every_stage_leaves_nothing_behind) {
  for (bool const begun : {false, true}) {
    SCOPED_TRACE(begun);
    bulkhead slots({.slots = 2, .waiters = 100, .max_wait = 1h});
    token_bucket quota({.rate = {.limit = 100, .per = 1s, .burst = 6}, .max_wait = 1h});
    time_limit in_time({.limit = 1h});
    breaker::options o;
    o.settings.consecutive = 1000;
    breaker db(o);
    adaptive_throttle throttle;
    hedge twice({.delay = 1ms});
    retry again({.retries = 2, .total = 1h, .pause = {.base = 1min, .cap = 1min}}, 1);
    single_flight<int, int> flights({.limit = 1h});
    auto const guarded = start(work) | through(slots) | through(quota) | through(in_time) | through(db) |
                         through(throttle) | through(twice, idempotent) | through(again, idempotent) |
                         total(1h) | one_per_key(flights);
    int answered = 0;
    {
      context_that_dies context;
      for (int i = 0; i < 16; ++i) {
        for (asio::any_io_executor const& where :
             {asio::any_io_executor(context.real.get_executor()), context.simulated.get_executor()}) {
          auto const key = where == context.simulated.get_executor() ? i / 2 : 100 + i / 2;
          guarded.async([&answered](result<int> const&) { ++answered; }, where, deadline(), key);
        }
      }
      if (begun) context.run();
    }
    EXPECT_EQ(answered, 0);
    EXPECT_EQ(slots.snapshot().used + slots.snapshot().waiting, 0u);
    EXPECT_EQ(in_time.snapshot().orphans, 0u);
    EXPECT_EQ(flights.snapshot().flights + flights.snapshot().waiting, 0u);
    EXPECT_TRUE(slots.try_acquire());
    EXPECT_TRUE(db.try_acquire(time_point(1h)));
  }
}

}  // namespace
