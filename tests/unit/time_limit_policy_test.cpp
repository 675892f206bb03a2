// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/time_limit.hpp>

#include <optional>
#include <string>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/testing/world.hpp>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::deadline;
using redoubt::duration;
using redoubt::effect;
using redoubt::errc;
using redoubt::result;
using redoubt::time_limit;
using redoubt::timer;
using redoubt::testing::world;

/// Takes so long, whatever it is asked to do.
asio::awaitable<result<int>> stubborn(duration time, deadline) {
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  timer clock(co_await asio::this_coro::executor);
  co_await clock.async_wait_until(clock.now() + time, asio::use_awaitable);
  result<int> out(42);
  co_return out;
}

/// Ends when it is asked to.
asio::awaitable<result<int>> polite(duration time, bool* stopped) {
  timer clock(co_await asio::this_coro::executor);
  boost::system::error_code ec;
  co_await clock.async_wait_until(clock.now() + time, asio::redirect_error(asio::use_awaitable, ec));
  *stopped = bool(ec);
  result<int> out(7);
  co_return out;
}

/// A call's end.
struct ended {
  std::optional<result<int>> value;
  redoubt::time_point at{};
};

template <class Stack, class... Args>
void call(world& w, Stack const& s, deadline by, ended& into, Args... args) {
  s.async([&w, &into](result<int> r) { into.value = std::move(r), into.at = w.now(); }, w.get_executor(), by,
          args...);
}

TEST(time_limit, passes_a_value_that_comes_in_time) {
  world w;
  time_limit guard({.name = "db", .limit = 500ms});
  auto const s = start(stubborn) | through(guard);
  ended e;
  call(w, s, {}, e, duration(400ms));
  EXPECT_FALSE(e.value) << "never inside the call";
  w.run_for(1s);
  ASSERT_TRUE(e.value && *e.value);
  EXPECT_EQ(**e.value, 42);
  EXPECT_EQ(guard.snapshot().in_time, 1u);
}

TEST(time_limit, the_caller_returns_on_time_and_the_orphan_stays_counted_until_it_ends) {
  world w;
  time_limit guard({.name = "db", .limit = 500ms});
  auto const s = start(stubborn) | through(guard);
  auto const begin = w.now();
  ended e;
  call(w, s, {}, e, duration(2s));
  w.run_for(1s);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.at - begin, 500ms);
  EXPECT_EQ(e.value->error().code, errc::limit_exceeded);
  EXPECT_EQ(e.value->error().effect, effect::unknown);
  EXPECT_EQ(e.value->error().elapsed, 500ms);
  EXPECT_EQ(e.value->error().detail->note, "db");
  EXPECT_EQ(guard.snapshot().orphans, 1u);
  w.run_for(999ms);
  EXPECT_EQ(guard.snapshot().orphans, 1u);
  w.run_for(2ms);
  EXPECT_EQ(guard.snapshot().orphans, 0u);
  EXPECT_EQ(guard.snapshot().own, 1u);
}

TEST(time_limit, A_14_says_whose_limit_fired) {
  world w;
  time_limit guard({.limit = 500ms});
  auto const s = start(stubborn) | through(guard);
  ended e;
  call(w, s, deadline(w.now() + 200ms), e, duration(2s));
  w.run_for(200ms);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.value->error().code, errc::deadline_exceeded);
  EXPECT_EQ(guard.snapshot().callers, 1u);
  EXPECT_EQ(guard.snapshot().own, 0u);
  w.run_for(2s);
}

TEST(time_limit, C25_a_deadline_that_has_passed_starts_nothing) {
  world w;
  bool started = false;
  auto const s = redoubt::start_plain<int>([&](auto const&, auto done) {
                   started = true;
                   std::move(done)(result<int>(1));
                 }) |
                 redoubt::limit(1s);
  ended e;
  call(w, s, deadline(w.now()), e);
  w.run_for(1ms);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.value->error().code, errc::deadline_exceeded);
  EXPECT_EQ(e.value->error().effect, effect::none);
  EXPECT_FALSE(started);
}

TEST(time_limit, asks_the_operation_to_stop) {
  world w;
  bool stopped = false;
  auto const s = redoubt::start([](duration t, bool* flag, deadline) { return polite(t, flag); }) |
                 redoubt::limit(100ms);
  ended e;
  call(w, s, {}, e, duration(2s), &stopped);
  w.run_for(101ms);
  EXPECT_TRUE(stopped);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.value->error().code, errc::limit_exceeded);
}

TEST(time_limit, cancelling_answers_the_caller_at_once) {
  world w;
  time_limit guard({.limit = 5s});
  auto const s = start(stubborn) | through(guard);
  asio::cancellation_signal stop;
  ended e;
  s.async(asio::bind_cancellation_slot(stop.slot(),
                                       [&](result<int> r) { e.value = std::move(r), e.at = w.now(); }),
          w.get_executor(), deadline{}, duration(2s));
  w.run_for(100ms);
  auto const now = w.now();
  stop.emit(asio::cancellation_type::terminal);
  w.run_for(1s);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.value->error().code, errc::cancelled);
  EXPECT_EQ(e.at, now);
  EXPECT_EQ(guard.snapshot().orphans, 1u);
  w.run_for(1s);
  EXPECT_EQ(guard.snapshot().orphans, 0u);
}

TEST(time_limit, an_operation_that_throws_is_a_failure) {
  world w;
  auto const s = redoubt::start([](deadline) -> asio::awaitable<result<int>> {
                   throw std::runtime_error("no");
                   co_return result<int>(1);
                 }) |
                 redoubt::limit(1s);
  ended e;
  call(w, s, {}, e);
  w.run_for(1ms);
  ASSERT_TRUE(e.value && !*e.value);
  EXPECT_EQ(e.value->error().code, errc::load_failed);
}

TEST(time_limit, an_orphan_may_outlive_its_limit) {
  world w;
  auto s = std::make_optional(start(stubborn) | redoubt::limit(100ms));
  ended e;
  call(w, *s, {}, e, duration(1s));
  w.run_for(200ms);
  EXPECT_TRUE(e.value);
  s.reset();
  w.run_for(2s);
}

TEST(time_limit, names_the_option_that_is_out_of_range) {
  EXPECT_THROW(time_limit({.limit = 0s}), redoubt::option_error);
}

}  // namespace
