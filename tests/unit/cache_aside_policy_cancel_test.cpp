// SPDX-License-Identifier: BSL-1.0
//
// the caller's own cancellation ends a cache read and never starts a fallback, wherever it comes.
#include <redoubt/policy/cache_aside.hpp>

#include <optional>
#include <string>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include "recording_sink.hpp"
#include "stub_client.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;
using test::words;

using cache = cache_aside<std::string, std::string, test::stub_client>;

struct cache_aside_policy_cancel : ::testing::TestWithParam<asio::cancellation_type> {
  test::virtual_context world;
  test::stub_client redis{world.executor()};
  test::recording_sink events;
  bulkhead db{{.name = "db", .slots = 1}};
  int loads = 0;
  duration load_time{};
  cache c{redis,
          [this](std::string const&, deadline) -> asio::awaitable<std::string> {
            ++loads;
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            timer clock(co_await asio::this_coro::executor);
            co_await clock.async_wait_until(clock.now() + load_time);
            co_return "loaded";
          },
          {.key = "k:", .ttl = 1s, .slots = &db, .events = &events}};

  asio::cancellation_signal signal;
  std::optional<outcome<std::string>> got;
  duration at{};

  void start() {
    c.get("a", {}, asio::bind_cancellation_slot(signal.slot(), [this](outcome<std::string> o) {
            ASSERT_FALSE(got) << "completed twice";
            got.emplace(std::move(o));
            at = world.elapsed();
          }));
  }

  void expect_cancelled_at(duration when) {
    world.run_for(when - world.elapsed());
    ASSERT_FALSE(got);
    signal.emit(GetParam());
    world.settle();
    ASSERT_TRUE(got) << "still waiting";
    EXPECT_EQ(got->problem(), outcome_problem::cancelled);
    EXPECT_EQ(got->error().code, errc::cancelled);
    EXPECT_FALSE(got->ok());
    EXPECT_EQ(at, when);
    world.run();
    auto const s = c.snapshot();
    EXPECT_EQ(s.cancelled, 1u);
    EXPECT_EQ(s.requests, 1u);
    EXPECT_EQ(s.cached + s.loaded + s.refused + s.failed, 0u);
    EXPECT_EQ(events.all.size(), 0u) << "the caller's own wish is not an event";
    EXPECT_EQ(db.snapshot().waiting, 0u);
  }
};

TEST_P(cache_aside_policy_cancel, A_12_during_the_read_there_is_no_fallback) {
  start();  // silence
  expect_cancelled_at(20ms);
  EXPECT_EQ(loads, 0);
}

TEST_P(cache_aside_policy_cancel, A_12_while_waiting_for_a_slot) {
  redis.on_call = [](words const&) { return test::nil(); };
  {
    auto const held = db.try_acquire();
    start();
    expect_cancelled_at(30ms);
  }
  EXPECT_EQ(loads, 0);
}

TEST_P(cache_aside_policy_cancel, A_12_during_the_load_nothing_is_written_although_the_loader_goes_on) {
  redis.on_call = [](words const& w) { return w[0] == "GET" ? test::nil() : test::ok(); };
  load_time = 200ms;
  start();
  expect_cancelled_at(40ms);
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(redis.count("SET"), 0u);
  EXPECT_EQ(db.snapshot().used, 0u);
}

TEST_P(cache_aside_policy_cancel, A_12_during_the_write) {
  redis.on_call = [](words const& w) { return w[0] == "GET" ? test::nil() : test::silence(); };
  start();
  expect_cancelled_at(10ms);
  EXPECT_EQ(redis.count("SET"), 1u);
}

TEST_P(cache_aside_policy_cancel, A_12_before_the_first_step) {
  start();
  signal.emit(GetParam());
  world.settle();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->problem(), outcome_problem::cancelled);
  EXPECT_EQ(loads, 0);
  world.run();
}

INSTANTIATE_TEST_SUITE_P(every_type, cache_aside_policy_cancel,
                         ::testing::Values(asio::cancellation_type::terminal,
                                           asio::cancellation_type::partial, asio::cancellation_type::total),
                         [](auto const& given) {
                           switch (given.param) {
                             case asio::cancellation_type::terminal: return "terminal";
                             case asio::cancellation_type::partial: return "partial";
                             default: return "total";
                           }
                         });

}  // namespace
