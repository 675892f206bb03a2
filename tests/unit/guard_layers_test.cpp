// SPDX-License-Identifier: BSL-1.0
//
// retry, hedge, token bucket and throttle as layers of a stack.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/adaptive_throttle.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/hedge.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>
#include <redoubt/guard/token_bucket.hpp>

#include "unit/guard_rig.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

failure failed(errc code, effect done = effect::none) {
  failure f;
  f.code = code;
  f.effect = done;
  return f;
}

struct guard_layers : ::testing::Test {
  test::virtual_context world;
  std::vector<duration> started;
  std::vector<std::string> arguments;
  std::vector<std::optional<failure>> script;  // beyond its end: a value

  // An operation of 5 ms that remembers its argument.
  auto operation() {
    return [this](std::string const& text, deadline) -> asio::awaitable<result<int>> {
      auto const which = started.size();
      started.push_back(world.elapsed());
      arguments.push_back(text);
      timer clock(world.executor());
      co_await clock.async_wait_until(world.now() + 5ms, asio::use_awaitable);
      result<int> out(static_cast<int>(which + 1));
      if (which < script.size() && script[which]) out = *script[which];
      co_return out;
    };
  }

  template <class Stack>
  result<int> ask(Stack const& guarded, deadline by = {}) {
    std::optional<result<int>> got;
    guarded.async([&](result<int> r) { got.emplace(std::move(r)); }, world.executor(), by,
                  std::string("sku"));
    EXPECT_FALSE(got);
    world.run();
    EXPECT_TRUE(got);
    return *got;
  }
};

TEST_F(guard_layers, a_retry_repeats_the_whole_inside_with_the_same_arguments) {
  retry again({.retries = 3, .pause = {.base = 10ms, .cap = 10ms}}, 1);
  auto const guarded = start(operation()) | through(again, repeat::not_executed);
  script = {failed(errc::connection_refused), failed(errc::connection_refused)};
  EXPECT_EQ(ask(guarded).value(), 3);
  EXPECT_EQ(arguments, std::vector<std::string>(3, "sku"));
  EXPECT_EQ(again.snapshot().attempts, 3u);
  EXPECT_EQ(again.snapshot().succeeded, 1u);
}

TEST_F(guard_layers, a_retry_sums_up_and_counts_each_end) {
  retry_budget budget({.ratio = 0, .per_second = 0, .capacity = 2});
  retry again({.retries = 5}, budget, 1);
  auto const guarded = start(operation()) | through(again, repeat::not_executed);
  script.assign(9, failed(errc::connection_refused));
  auto const got = ask(guarded);
  EXPECT_EQ(got.error().code, errc::connection_refused);
  EXPECT_EQ(started.size(), 3u);
  EXPECT_GE(got.error().elapsed, 15ms);
  EXPECT_EQ(again.snapshot().no_budget, 1u);

  script.assign(9, failed(errc::connection_lost, effect::unknown));
  EXPECT_EQ(ask(guarded).error().effect, effect::unknown);
  EXPECT_EQ(started.size(), 4u) << "not declared idempotent";
  EXPECT_EQ(ask(guarded, deadline(world.now())).error().code, errc::retries_exhausted);
  auto const s = again.snapshot();
  EXPECT_EQ(s.operations, s.succeeded + s.not_repeatable + s.none_left + s.no_time + s.no_budget);
}

TEST_F(guard_layers, A_12_cancelling_ends_a_retry_in_its_pause) {
  retry again({.retries = 3, .total = 1h, .pause = {.base = 1h, .cap = 1h}}, 1);
  auto const guarded = start(operation()) | through(again, repeat::not_executed);
  script = {failed(errc::connection_refused)};
  asio::cancellation_signal signal;
  std::optional<result<int>> got;
  guarded.async(
      asio::bind_cancellation_slot(signal.slot(), [&](result<int> r) { got.emplace(std::move(r)); }),
      world.executor(), deadline(), std::string("sku"));
  world.run_for(10ms);
  ASSERT_EQ(started.size(), 1u);
  ASSERT_FALSE(got);
  signal.emit(asio::cancellation_type::terminal);
  world.settle();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::cancelled);
}

// An operation need not listen. What it says when it ends at last is not a reason to go on.
TEST_F(guard_layers, A_12_after_a_cancellation_nothing_is_repeated_whatever_the_attempt_says) {
  for (std::size_t const during : {0u, 1u}) {
    SCOPED_TRACE(during);
    retry again({.retries = 5, .total = 1h, .pause = {.base = 10ms, .cap = 10ms}}, 1);
    test::manual_operation op;
    auto const guarded = start_plain<int>(op.operation()) | through(again, repeat::idempotent);
    asio::cancellation_signal signal;
    std::optional<result<int>> got;
    guarded.async(
        asio::bind_cancellation_slot(signal.slot(), [&](result<int> r) { got.emplace(std::move(r)); }),
        world.executor(), deadline());
    world.run_for(1ms);
    for (std::size_t i = 0; i < during; ++i) {
      op.end(i, result<int>(failed(errc::connection_lost, effect::unknown)));
      world.run_for(20ms);
    }
    ASSERT_EQ(op.started(), during + 1);
    signal.emit(asio::cancellation_type::terminal);
    world.run_for(1ms);
    EXPECT_FALSE(got) << "it takes no notice";
    op.end(during, result<int>(failed(errc::connection_lost, effect::unknown)));
    world.run();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->error().code, errc::cancelled);
    EXPECT_EQ(got->error().effect, effect::unknown) << "it may have been executed";
    EXPECT_EQ(op.started(), during + 1);
    auto const s = again.snapshot();
    EXPECT_EQ(s.operations, s.succeeded + s.not_repeatable + s.none_left + s.no_time + s.no_budget);
  }
}

TEST_F(guard_layers, C46_an_open_breaker_ends_a_retry_with_the_cause) {
  breaker health({.settings = {.consecutive = 2}, .seed = 1});
  retry again({.retries = 9, .total = 10s}, 1);
  auto const guarded = start(operation()) | through(health) | through(again, repeat::not_executed);
  script.assign(20, failed(errc::connection_refused));
  auto const got = ask(guarded);
  EXPECT_EQ(got.error().code, errc::breaker_open);
  EXPECT_EQ(got.error().cause, errc::connection_refused);
  EXPECT_EQ(started.size(), 2u);
  auto const before = world.elapsed();
  EXPECT_EQ(ask(guarded).error().code, errc::breaker_open);
  EXPECT_EQ(world.elapsed(), before) << "no pause";
  EXPECT_EQ(started.size(), 2u);
  EXPECT_EQ(health.snapshot().refused, 2u) << "once for each of the two, whatever the number of retries";
}

TEST_F(guard_layers, E_18_a_token_bucket_spreads_the_calls_and_each_attempt_takes_a_turn) {
  token_bucket quota({.rate = {.limit = 10, .per = 1s}, .max_wait = 1s});
  retry again({.retries = 1, .pause = {.base = 1ns, .cap = 1ns}}, 1);
  auto const guarded = start(operation()) | through(quota) | through(again, repeat::not_executed);
  script = {failed(errc::connection_refused)};
  EXPECT_EQ(ask(guarded).value(), 2);
  EXPECT_EQ(started, (std::vector<duration>{0ms, 100ms}));
  EXPECT_EQ(quota.snapshot().waited, 1u);

  auto throttled = failed(errc::remote_throttled);
  throttled.retry_after = 10s;
  script.assign(9, throttled);
  EXPECT_EQ(ask(guarded).error().code, errc::remote_throttled);
  auto const refused = ask(guarded);
  EXPECT_EQ(refused.error().code, errc::rate_limited) << "held off";
  EXPECT_GT(refused.error().retry_after, 9s);
}

TEST_F(guard_layers, A_20_expiring_in_a_queue_is_our_saturation_also_after_having_waited_for_a_turn) {
  token_bucket quota({.rate = {.limit = 10, .per = 1s}, .max_wait = 1s});
  bulkhead slots({.slots = 1, .max_wait = 10s});
  breaker health({.settings = {.consecutive = 1}});
  test::manual_operation op;
  auto const guarded =
      start_plain<int>(op.operation()) | through(slots) | through(quota) | limit(300ms) | through(health);
  auto held = slots.try_acquire();
  EXPECT_TRUE(quota.try_acquire(world.now()));
  std::optional<result<int>> got;
  guarded.async([&](result<int> r) { got.emplace(std::move(r)); }, world.executor(), deadline());
  world.run_for(200ms);
  EXPECT_EQ(quota.snapshot().waited, 1u);
  EXPECT_EQ(slots.snapshot().waiting, 1u);
  world.run_for(100ms);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::limit_exceeded);
  EXPECT_EQ(got->error().effect, effect::none);
  EXPECT_EQ(got->error().group(), failure_class::saturated);
  EXPECT_EQ(health.snapshot().failed, 0u);
  held->release();
  world.run();
  EXPECT_EQ(op.started(), 0u);
  EXPECT_EQ(slots.snapshot().used, 0u);
}

TEST_F(guard_layers, a_throttle_sheds_before_anything_is_started) {
  adaptive_throttle throttle({.seed = 1});
  auto const guarded = start(operation()) | through(throttle);
  script.assign(1000, failed(errc::connection_refused));
  for (int i = 0; i < 300; ++i) (void)ask(guarded);
  auto const s = throttle.snapshot();
  EXPECT_GT(s.refused, 150u);
  EXPECT_EQ(s.admitted, started.size());
  EXPECT_EQ(s.failed, started.size());
}

TEST_F(guard_layers, a_hedge_starts_the_inside_a_second_time) {
  hedge twice({.delay = 2ms});
  time_limit slow({.limit = 1s});
  auto const guarded = start(operation()) | through(slow) | through(twice, idempotent);
  EXPECT_EQ(ask(guarded).value(), 1) << "the first is still faster";
  EXPECT_EQ(arguments, std::vector<std::string>(2, "sku"));
  EXPECT_EQ(twice.snapshot().second, 1u);
}

TEST_F(guard_layers, E_03_a_plan_tells_sends_and_time) {
  token_bucket quota({.name = "q", .rate = {.limit = 100, .per = 1min}, .max_wait = 1s});
  adaptive_throttle throttle({.name = "t"});
  hedge twice({.name = "h", .delay = 50ms});
  retry again({.retries = 2, .total = 2s, .attempt_timeout = 500ms}, 1);
  auto const guarded = start(operation()) | through(quota) | limit(500ms) | through(throttle) |
                       through(twice, idempotent) | through(again, idempotent);
  auto const plan = guarded.plan();
  ASSERT_EQ(plan.layers.size(), 5u);
  EXPECT_EQ(plan.worst_case().sends, 6u) << "3 attempts, each hedged";
  EXPECT_EQ(plan.worst_case().worst_time, 2s);
  EXPECT_EQ(plan.layers.at(3).figures.worst_time, 550ms);
  EXPECT_NE(plan.text().find("3 attempts in 2 s"), std::string::npos) << plan.text();
}

}  // namespace
