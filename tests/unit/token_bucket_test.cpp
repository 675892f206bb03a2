// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/token_bucket.hpp>

#include <optional>
#include <stdexcept>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

struct token_bucket_guard : ::testing::Test {
  test::virtual_context world;

  // The time at which each of `count` callers got its answer.
  struct seen {
    duration at;
    bool granted;
    duration retry_after;
  };
  std::vector<seen> all(token_bucket& bucket, int count, deadline by = {}) {
    std::vector<seen> out;
    for (int i = 0; i < count; ++i) {
      bucket.acquire(world.executor(), by, [&](result<void> r) {
        out.push_back({world.elapsed(), r.has_value(), r ? 0ns : r.error().retry_after});
      });
    }
    EXPECT_TRUE(out.empty()) << "never inside the call";
    world.run();
    return out;
  }
};

TEST_F(token_bucket_guard, E_18_turns_come_at_the_rate_of_the_quota) {
  token_bucket bucket({.rate = {.limit = 100, .per = 1min}, .max_wait = 2s});
  auto const got = all(bucket, 5);
  ASSERT_EQ(got.size(), 5u);
  // The one that is refused hears it at once, with the time of the turn it could have had.
  EXPECT_TRUE(got[0].granted);
  EXPECT_EQ(got[0].at, 0ms);
  EXPECT_FALSE(got[1].granted);
  EXPECT_EQ(got[1].at, 0ms);
  EXPECT_EQ(got[1].retry_after, 2400ms);
  EXPECT_EQ(got[2].at, 600ms);
  EXPECT_EQ(got[4].at, 1800ms);
  auto const s = bucket.snapshot();
  EXPECT_EQ(s.granted, 4u);
  EXPECT_EQ(s.waited, 3u);
  EXPECT_EQ(s.refused, 1u);
}

TEST_F(token_bucket_guard, nobody_waits_for_a_turn_that_comes_too_late) {
  token_bucket bucket({.rate = {.limit = 1, .per = 1s}, .max_wait = 1h});
  auto const got = all(bucket, 3, world.in(1500ms));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_FALSE(got[1].granted);
  EXPECT_EQ(got[1].at, 0ms);
  EXPECT_EQ(got[1].retry_after, 2s);
  EXPECT_EQ(got[2].at, 1s);
}

TEST_F(token_bucket_guard, without_waiting) {
  token_bucket bucket({.name = "psp", .rate = {.limit = 3, .per = 3s, .burst = 2}, .max_wait = 0s});
  auto const now = world.now();
  EXPECT_TRUE(bucket.try_acquire(now));
  EXPECT_TRUE(bucket.try_acquire(now));
  auto const refused = bucket.try_acquire(now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::rate_limited);
  EXPECT_EQ(refused.error().group(), failure_class::saturated);
  EXPECT_EQ(refused.error().effect, effect::none);
  EXPECT_EQ(refused.error().retry_after, 1500ms);
  EXPECT_TRUE(refused.error().rejected);
  EXPECT_NE(refused.error().message().find("psp"), std::string::npos);
}

TEST_F(token_bucket_guard, A_12_a_cancelled_wait_ends_and_its_turn_is_nobodys) {
  token_bucket bucket({.rate = {.limit = 1, .per = 1s}, .max_wait = 10s});
  EXPECT_TRUE(bucket.try_acquire(world.now()));
  asio::cancellation_signal signal;
  std::optional<result<void>> got;
  bucket.acquire(world.executor(), {},
                 asio::bind_cancellation_slot(signal.slot(), [&](result<void> r) { got.emplace(r); }));
  world.run_for(300ms);
  signal.emit(asio::cancellation_type::terminal);
  world.settle();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::cancelled);
  EXPECT_EQ(got->error().elapsed, 300ms);
  EXPECT_EQ(all(bucket, 1).at(0).at, 2s);
}

TEST_F(token_bucket_guard, E_05_a_pause_that_the_provider_asks_for_holds_all_off) {
  token_bucket bucket({.rate = {.limit = 10, .per = 1s}, .max_wait = 1h});
  auto throttled = [](deadline) -> asio::awaitable<result<int>> {
    failure f;
    f.code = errc::remote_throttled;
    f.effect = effect::none;
    f.retry_after = 30s;
    result<int> out(f);
    co_return out;
  };
  auto const go = [&]() -> asio::awaitable<result<int>> {
    auto out = co_await bucket.run<int>(world.executor(), {}, throttled);
    co_return out;
  };
  EXPECT_EQ(world.run(go()).error().code, errc::remote_throttled);
  EXPECT_EQ(bucket.snapshot().held_off, 1u);
  auto const got = all(bucket, 2);
  EXPECT_EQ(got.at(0).at, 30s);
  EXPECT_EQ(got.at(1).at, 30s + 100ms);
}

TEST_F(token_bucket_guard, other_failures_hold_nobody_off) {
  token_bucket bucket({.rate = {.limit = 10, .per = 1s}});
  failure f;
  f.code = errc::remote_failed;
  f.retry_after = 30s;
  bucket.on_failure(f, world.now());
  f.code = errc::remote_throttled;
  f.retry_after = 0s;
  bucket.on_failure(f, world.now());
  EXPECT_EQ(bucket.snapshot().held_off, 0u);
  EXPECT_TRUE(bucket.try_acquire(world.now()));
}

TEST_F(token_bucket_guard, options_name_the_bad_field) {
  EXPECT_THROW(token_bucket({.rate = {.limit = 0, .per = 1s}}), option_error);
  try {
    token_bucket bad({.rate = {.limit = 1, .per = 1s}, .max_wait = 2h});
    FAIL() << "accepted";
  } catch (option_error const& e) {
    EXPECT_EQ(e.field(), "max_wait");
  }
  try {
    token_bucket bad({.rate = {.limit = 1, .per = 1s}, .max_hold_off = 25h});
    FAIL() << "accepted";
  } catch (option_error const& e) {
    EXPECT_EQ(e.field(), "max_hold_off");
  }
}

// The provider has said "not now": that holds for who was given a turn before, too.
TEST_F(token_bucket_guard, E_05_who_waits_already_is_held_off_too) {
  token_bucket bucket({.rate = {.limit = 10, .per = 1s}, .max_wait = 1h});
  std::vector<seen> got;
  for (auto const by : {deadline(), deadline(), world.in(5s), deadline()}) {
    bucket.acquire(world.executor(), by, [&](result<void> r) {
      got.push_back({world.elapsed(), r.has_value(), r ? 0ns : r.error().retry_after});
    });
  }
  world.run_for(50ms);
  failure f;
  f.code = errc::remote_throttled;
  f.retry_after = 10s;
  bucket.on_failure(f, world.now());
  world.run();
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].at, 0ms);
  EXPECT_EQ(got[1].at, 200ms) << "no turn comes in time for this one";
  EXPECT_FALSE(got[1].granted);
  EXPECT_EQ(got[1].retry_after, 9950ms);
  EXPECT_EQ(got[2].at, 10'050ms);
  EXPECT_EQ(got[3].at, 10'150ms);
  EXPECT_TRUE(got[2].granted && got[3].granted);
  EXPECT_EQ(bucket.snapshot().held_off, 1u);
}

TEST_F(token_bucket_guard, E_05_no_answer_keeps_everybody_off_for_longer_than_it_may) {
  token_bucket bucket({.rate = {.limit = 10, .per = 1s}, .max_wait = 0s, .max_hold_off = 10min});
  failure f;
  f.code = errc::remote_throttled;
  for (auto const asked : {duration(24h * 365), duration::max()}) {
    f.retry_after = asked;
    bucket.on_failure(f, world.now());
    auto const refused = bucket.try_acquire(world.now());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().retry_after, 10min);
    world.run_for(10min);
    EXPECT_TRUE(bucket.try_acquire(world.now()));
  }
}

TEST_F(token_bucket_guard, C100_an_operation_that_throws_is_a_failure) {
  token_bucket bucket({.rate = {.limit = 10, .per = 1s}});
  auto throwing = [](deadline) -> asio::awaitable<result<int>> {
    throw std::runtime_error("no");
    co_return 1;
  };
  std::optional<result<int>> got;
  bucket.run<int>(world.executor(), {}, throwing, [&](result<int> r) { got.emplace(std::move(r)); });
  world.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::load_failed);
}

}  // namespace
