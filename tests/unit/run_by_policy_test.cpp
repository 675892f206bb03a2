// SPDX-License-Identifier: BSL-1.0
#include <redoubt/async/run_by.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::run_by;
using redoubt::run_end;
using redoubt::run_result;

asio::awaitable<void> pause(redoubt::duration d) {
  redoubt::timer clock(co_await asio::this_coro::executor);
  boost::system::error_code stopped;
  co_await clock.async_wait_until(clock.now() + d, asio::redirect_error(asio::use_awaitable, stopped));
  if (stopped) throw boost::system::system_error(stopped);
}

/// Ends after so long and says so when it is really over; ignores cancellation when told to.
asio::awaitable<std::string> work(redoubt::duration d, bool stubborn,
                                  [[maybe_unused]] std::shared_ptr<int> held) {
  if (stubborn) co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await pause(d);
  co_return std::string(100, 'x');
}

struct fixture : ::testing::Test {
  test::virtual_context world;
  run_result<std::string> got;
  int calls = 0;
  redoubt::duration at{};

  template <class Function>
  void start(redoubt::deadline by, Function f, asio::cancellation_slot slot = {}) {
    run_by<std::string>(world.executor(), by, std::move(f),
                        asio::bind_cancellation_slot(slot, [this](run_result<std::string> r) {
                          ++calls;
                          got = std::move(r);
                          at = world.elapsed();
                        }));
  }
};

using run_by_policy = fixture;

TEST_F(run_by_policy, gives_the_value_and_never_inside_the_call) {
  start(world.in(50ms), [] { return work(10ms, false, nullptr); });
  EXPECT_EQ(calls, 0);
  world.run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(got.end, run_end::finished);
  EXPECT_EQ(got.value->size(), 100u);
  EXPECT_EQ(at, 10ms);
}

TEST_F(run_by_policy, without_a_deadline_it_waits_for_the_value) {
  start({}, [] { return work(10s, false, nullptr); });
  world.run();
  EXPECT_EQ(got.end, run_end::finished);
  EXPECT_EQ(at, 10s);
}

TEST_F(run_by_policy, A_20_returns_on_time_although_the_coroutine_ignores_cancellation) {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> const watch = held;
  start(world.in(50ms), [held = std::move(held)]() mutable { return work(200ms, true, std::move(held)); });
  world.run_for(50ms);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(got.end, run_end::expired);
  EXPECT_EQ(at, 50ms);
  EXPECT_FALSE(watch.expired()) << "what it holds stays held until it really ends";
  world.run_for(149ms);
  EXPECT_FALSE(watch.expired());
  world.run();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(calls, 1);
}

TEST_F(run_by_policy, cancels_the_coroutine_at_the_deadline) {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> const watch = held;
  start(world.in(50ms), [held = std::move(held)]() mutable { return work(10h, false, std::move(held)); });
  world.run_for(50ms);
  EXPECT_EQ(got.end, run_end::expired);
  EXPECT_TRUE(watch.expired());
}

TEST_F(run_by_policy, passes_an_exception_on) {
  start(world.in(50ms), []() -> asio::awaitable<std::string> {
    co_await pause(1ms);
    throw std::runtime_error("later");
  });
  world.run();
  EXPECT_EQ(got.end, run_end::threw);
  EXPECT_THROW(std::rethrow_exception(got.error), std::runtime_error);
}

TEST_F(run_by_policy, C100_passes_an_exception_on_that_comes_before_the_first_suspension) {
  start(world.in(50ms), []() -> asio::awaitable<std::string> { throw std::logic_error("no coroutine"); });
  world.run();
  EXPECT_EQ(got.end, run_end::threw);
  EXPECT_THROW(std::rethrow_exception(got.error), std::logic_error);
}

TEST_F(run_by_policy, does_not_start_when_the_deadline_has_passed) {
  bool started = false;
  start(redoubt::deadline(world.now()), [&started]() -> asio::awaitable<std::string> {
    started = true;
    return work(1ms, false, nullptr);
  });
  world.run();
  EXPECT_EQ(got.end, run_end::expired);
  EXPECT_FALSE(started);
}

TEST_F(run_by_policy, the_callers_cancellation_ends_it_at_once) {
  asio::cancellation_signal signal;
  start(
      world.in(1s), [] { return work(200ms, true, nullptr); }, signal.slot());
  world.run_for(20ms);
  EXPECT_EQ(calls, 0);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(calls, 0) << "never inside emit";
  world.settle();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(got.end, run_end::cancelled);
  EXPECT_EQ(at, 20ms);
  world.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(run_by_policy, is_destroyed_cleanly_with_its_context) {
  auto other = std::make_unique<test::virtual_context>();
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> const watch = held;
  run_by<std::string>(
      other->executor(), other->in(1s), [held]() mutable { return work(200ms, true, std::move(held)); },
      [](run_result<std::string>) { FAIL() << "the context is gone"; });
  held.reset();
  other->run_for(20ms);
  EXPECT_FALSE(watch.expired());
  other.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
