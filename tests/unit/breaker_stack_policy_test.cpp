// SPDX-License-Identifier: BSL-1.0
//
// A breaker around whole calls: who reaches the dependency, and what becomes of a trial that does not report.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>

#include "recording_sink.hpp"
#include "unit/guard_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::breaker;
using redoubt::breaker_phase;
using redoubt::deadline;
using redoubt::errc;
using redoubt::result;
using redoubt::testing::world;
using test::failed;
using test::told;

breaker::options plain(redoubt::event_sink* events = nullptr) {
  breaker::options o;
  o.name = "payments";
  o.settings.consecutive = 5;
  o.settings.open = {.floor = 1s, .base = 1s, .cap = 1s};
  o.settings.trial_limit = 200ms;
  o.events = events;
  return o;
}

void open_it(breaker& b, redoubt::time_point now) {
  for (int i = 0; i < 5; ++i) b.try_acquire(now)->record(result<int>(failed(errc::connection_lost)), now);
}

TEST(breaker_stack, C87_ten_thousand_callers_after_the_open_period_and_one_call_to_the_backend) {
  world w;
  breaker b(plain());
  test::manual_operation backend;
  auto const s = redoubt::start_plain<int>(backend.operation()) | redoubt::limit(1s) | through(b);
  open_it(b, w.now());
  w.run_for(1s);
  auto const begin = w.now();
  std::vector<told> callers(10'000);
  for (auto& c : callers) call(w, s, {}, c);
  w.run_for(100ms);  // the trial takes that long
  EXPECT_EQ(backend.started(), 1u);
  int refused = 0;
  for (auto const& c : callers) {
    if (!c.value) continue;
    ++refused;
    EXPECT_EQ(c.code(), errc::breaker_open);
    EXPECT_EQ(c.at, begin) << "at once";
  }
  EXPECT_EQ(refused, 9999);
  EXPECT_EQ(b.snapshot().refused, 9999u);
  backend.end(0, result<int>(7));
  w.run_for(1ms);
  EXPECT_TRUE(callers[0].ok()) << "the first one was the trial";
  EXPECT_EQ(b.snapshot().phase, breaker_phase::closed);
  told after;
  call(w, s, {}, after);
  w.run_for(1ms);
  EXPECT_EQ(backend.started(), 2u);
}

asio::awaitable<result<int>> throws_at_once(int, deadline) {
  throw std::runtime_error("user code");
  co_return result<int>(1);
}

TEST(breaker_stack, C88_a_trial_that_is_cancelled_dropped_or_throws_lets_the_next_one_try) {
  world w;
  breaker b(plain());
  test::manual_operation backend;
  auto const s = redoubt::start_plain<int>(backend.operation()) | redoubt::limit(1s) | through(b);
  open_it(b, w.now());
  w.run_for(1s);

  asio::cancellation_signal stop;
  told cancelled, dropped, thrown, next;
  s.async(asio::bind_cancellation_slot(stop.slot(), [&](result<int> r) { cancelled.value = std::move(r); }),
          w.get_executor(), deadline{}, 1);
  w.run_for(1ms);
  stop.emit(asio::cancellation_type::terminal);
  w.run_for(1ms);
  EXPECT_EQ(cancelled.code(), errc::cancelled);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::half_open);

  call(w, s, {}, dropped, 1);
  w.run_for(1ms);
  ASSERT_EQ(backend.started(), 2u) << "at once, without another open period";
  backend.drop(1);
  w.run_for(1ms);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::half_open);

  auto const throwing = redoubt::start(throws_at_once) | redoubt::limit(1s) | through(b);
  call(w, throwing, {}, thrown, 1);
  w.run_for(1ms);
  EXPECT_EQ(thrown.code(), errc::load_failed);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::half_open);

  call(w, s, {}, next, 1);
  w.run_for(1ms);
  ASSERT_EQ(backend.started(), 3u);
  backend.end(2, result<int>(1));
  w.run_for(1ms);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::closed);
  EXPECT_EQ(b.snapshot().opened, 1u);
  EXPECT_EQ(b.snapshot().trials, 4u);
}

TEST(breaker_stack, C88_a_trial_that_never_ends_counts_as_failed_by_its_own_limit) {
  world w;
  breaker b(plain());
  test::manual_operation silent;
  auto const s = redoubt::start_plain<int>(silent.operation()) | through(b);  // nothing else limits it
  open_it(b, w.now());
  w.run_for(1s);
  told trial, other;
  call(w, s, {}, trial);
  w.run_for(249ms);
  call(w, s, {}, other);
  w.run_for(0ms);
  EXPECT_EQ(b.snapshot().opened, 1u);
  w.run_for(1ms);  // its limit and 50 ms
  call(w, s, {}, other);
  w.run_for(0ms);
  EXPECT_EQ(other.code(), errc::breaker_open);
  EXPECT_EQ(b.snapshot().opened, 2u);
  EXPECT_EQ(b.snapshot().lost_trials, 1u);
  silent.end(0, result<int>(1));
  w.run_for(0ms);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::open) << "too late";
}

TEST(breaker_stack, C90_ten_slow_calls_from_before_report_while_the_trial_is_out) {
  world w;
  test::recording_sink events;
  breaker b(plain(&events));
  test::manual_operation backend;
  auto const s = redoubt::start_plain<int>(backend.operation()) | through(b);
  std::vector<told> slow(10);
  for (auto& t : slow) call(w, s, {}, t);
  w.run_for(1ms);
  open_it(b, w.now());
  w.run_for(1s);
  told trial;
  call(w, s, {}, trial);
  w.run_for(1ms);
  ASSERT_EQ(b.snapshot().phase, breaker_phase::half_open);
  for (std::size_t i = 0; i < 10; ++i) {
    backend.end(i, i % 2 == 0 ? result<int>(1) : result<int>(failed(errc::connection_lost)));
  }
  w.run_for(1ms);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::half_open);
  EXPECT_EQ(b.snapshot().stale, 10u);
  EXPECT_EQ(b.snapshot().succeeded, 5u) << "in the numbers all the same";
  EXPECT_EQ(b.snapshot().failed, 10u);
  EXPECT_EQ(events.count(redoubt::event_kind::breaker_opened), 1u);
}

// What a route with a fallback pays when its dependency freezes.
TEST(breaker_stack, C92_after_five_timeouts_the_fallback_comes_at_once) {
  world w;
  breaker b(plain());
  test::manual_operation frozen;
  auto const s = redoubt::start_plain<int>(frozen.operation()) | redoubt::limit(100ms) | through(b);
  constexpr int fallback = -1;
  for (int i = 0; i < 50; ++i) {
    std::optional<int> answer;
    auto const begin = w.now();
    auto at = begin;
    s.async([&](result<int> r) { answer = r ? *r : fallback, at = w.now(); }, w.get_executor(), deadline{});
    w.run_for(i < 5 ? 100ms : 1ms);
    ASSERT_EQ(answer, fallback);
    EXPECT_EQ(at - begin, i < 5 ? 100ms : 0ms) << i;
  }
  EXPECT_EQ(b.snapshot().opened, 1u);
  EXPECT_EQ(frozen.started(), 5u);
}

}  // namespace
