// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/hedge.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

failure failed(errc code, effect done = effect::none, std::uint8_t sends = 0) {
  failure f;
  f.code = code;
  f.effect = done;
  f.attempts = sends;
  return f;
}

// A dependency whose attempts take what the script says, and end with a value or a failure.
struct scripted {
  struct step {
    duration takes;
    std::optional<failure> fails{};
    bool stubborn = false;  // ignores cancellation
  };
  std::vector<step> script;
  std::vector<duration> started{};
  std::vector<std::string> ended{};
};

asio::awaitable<result<int>> attempt_of(scripted& s, test::virtual_context& world) {
  auto const which = s.started.size();
  s.started.push_back(world.elapsed());
  auto const step = s.script.at(which);
  if (step.stubborn) co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  timer clock(co_await asio::this_coro::executor);
  boost::system::error_code stopped;
  co_await clock.async_wait_until(world.now() + step.takes,
                                  asio::redirect_error(asio::use_awaitable, stopped));
  result<int> out(static_cast<int>(which + 1));
  if (step.fails) out = *step.fails;
  if (stopped) out = failed(errc::cancelled, effect::unknown, 1);
  s.ended.push_back(stopped ? "cancelled" : step.fails ? "failed" : "value");
  co_return out;
}

struct hedge_guard : ::testing::Test {
  test::virtual_context world;
  scripted dependency;

  struct answer {
    result<int> got;
    duration at;
  };
  answer ask(hedge& h, deadline by = {}) {
    std::optional<answer> out;
    auto attempt = [this](deadline) { return attempt_of(dependency, world); };
    h.run<int>(world.executor(), by, idempotent, attempt, [&](result<int> r) {
      out.emplace(answer{std::move(r), world.elapsed()});
    });
    EXPECT_FALSE(out) << "never inside the call";
    world.run();
    EXPECT_TRUE(out);
    return *out;
  }
};

TEST_F(hedge_guard, a_fast_operation_is_made_once) {
  hedge h({.delay = 20ms});
  dependency.script = {{10ms}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.value(), 1);
  EXPECT_EQ(one.at, 10ms);
  auto const s = h.snapshot();
  EXPECT_EQ(s.attempts, 1u);
  EXPECT_EQ(s.second, 0u);
}

TEST_F(hedge_guard, a_slow_one_is_made_twice_and_the_faster_answer_taken) {
  hedge h({.delay = 20ms});
  dependency.script = {{500ms}, {5ms}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.value(), 2);
  EXPECT_EQ(one.at, 25ms);
  EXPECT_EQ(dependency.started, (std::vector<duration>{0ms, 20ms}));
  EXPECT_EQ(dependency.ended, (std::vector<std::string>{"value", "cancelled"})) << "the loser is cancelled";
  auto const s = h.snapshot();
  EXPECT_EQ(s.second, 1u);
  EXPECT_EQ(s.second_won, 1u);
  EXPECT_EQ(s.attempts, 2u);
  EXPECT_EQ(s.ended, 2u);
}

TEST_F(hedge_guard, the_first_may_still_win) {
  hedge h({.delay = 20ms});
  dependency.script = {{30ms}, {100ms}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.value(), 1);
  EXPECT_EQ(one.at, 30ms);
  EXPECT_EQ(h.snapshot().second_won, 0u);
}

TEST_F(hedge_guard, a_loser_that_ignores_cancellation_holds_up_nobody_and_stays_counted) {
  hedge h({.delay = 20ms});
  dependency.script = {{500ms, {}, true}, {5ms}};
  std::optional<duration> at;
  auto attempt = [this](deadline) { return attempt_of(dependency, world); };
  h.run<int>(world.executor(), {}, idempotent, attempt, [&](result<int>) { at = world.elapsed(); });
  world.run_for(100ms);
  EXPECT_EQ(at, 25ms);
  EXPECT_EQ(h.snapshot().attempts - h.snapshot().ended, 1u);
  world.run();
  EXPECT_EQ(h.snapshot().attempts, h.snapshot().ended);
}

TEST_F(hedge_guard, it_is_not_a_retry) {
  hedge h({.delay = 20ms});
  dependency.script = {{5ms, failed(errc::connection_refused)}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.error().code, errc::connection_refused);
  EXPECT_EQ(one.at, 5ms);
  EXPECT_EQ(dependency.started.size(), 1u);
}

TEST_F(hedge_guard, a_failure_waits_for_the_other_attempt) {
  hedge h({.delay = 20ms});
  dependency.script = {{30ms, failed(errc::connection_lost, effect::unknown, 1)}, {40ms}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.value(), 2);
  EXPECT_EQ(one.at, 60ms);
}

TEST_F(hedge_guard, when_both_fail_nothing_is_hidden) {
  hedge h({.delay = 20ms});
  dependency.script = {{30ms, failed(errc::connection_lost, effect::unknown, 1)},
                       {40ms, failed(errc::connection_refused)}};
  auto const one = ask(h);
  EXPECT_EQ(one.got.error().code, errc::connection_refused);
  EXPECT_EQ(one.got.error().effect, effect::unknown) << "the first may have been executed";
  EXPECT_EQ(one.got.error().attempts, 1);
  EXPECT_EQ(one.got.error().elapsed, 60ms);
}

TEST_F(hedge_guard, second_attempts_are_a_share_of_the_operations) {
  hedge h({.delay = 20ms, .ratio = 0.1, .burst = 2});
  for (int i = 0; i < 100; ++i) {
    dependency = {};
    dependency.script = {{50ms}, {50ms}};
    (void)ask(h);
  }
  auto const s = h.snapshot();
  EXPECT_EQ(s.operations, 100u);
  EXPECT_EQ(s.second, 11u) << "two at first, and one for each ten; the first operation finds it full";
  EXPECT_EQ(s.no_budget, 89u);
}

TEST_F(hedge_guard, none_where_the_deadline_comes_first) {
  hedge h({.delay = 20ms});
  dependency.script = {{50ms}};
  (void)ask(h, world.in(20ms));
  EXPECT_EQ(dependency.started.size(), 1u);
  EXPECT_EQ(h.snapshot().no_budget, 0u);
}

TEST_F(hedge_guard, A_12_cancellation_ends_both_and_starts_none) {
  for (auto when : {10ms, 30ms}) {
    dependency = {};
    dependency.script = {{500ms}, {500ms}};
    hedge h({.delay = 20ms});
    asio::cancellation_signal signal;
    std::optional<result<int>> got;
    auto attempt = [this](deadline) { return attempt_of(dependency, world); };
    h.run<int>(
        world.executor(), {}, idempotent, attempt,
        asio::bind_cancellation_slot(signal.slot(), [&](result<int> r) { got.emplace(std::move(r)); }));
    world.run_for(when);
    signal.emit(asio::cancellation_type::terminal);
    world.settle();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->error().code, errc::cancelled);
    auto const began = h.snapshot().attempts;
    EXPECT_EQ(began, when < 20ms ? 1u : 2u);
    world.run();
    EXPECT_EQ(h.snapshot().attempts, began);
    EXPECT_EQ(h.snapshot().ended, began);
  }
}

TEST_F(hedge_guard, an_attempt_that_throws_is_a_failure) {
  hedge h({.delay = 20ms});
  auto attempt = [](deadline) -> asio::awaitable<result<int>> {
    throw std::runtime_error("no");
    co_return 1;
  };
  std::optional<result<int>> got;
  h.run<int>(world.executor(), {}, idempotent, attempt, [&](result<int> r) { got.emplace(std::move(r)); });
  world.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::load_failed);
}

TEST_F(hedge_guard, options_name_the_bad_field) {
  auto const field = [](hedge::options o) -> std::string {
    try {
      hedge h(std::move(o));
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.delay = 0s}), "delay");
  EXPECT_EQ(field({.delay = 1s, .ratio = 2}), "ratio");
  EXPECT_EQ(field({.delay = 1s, .burst = 1}), "burst");
  EXPECT_EQ(field({.delay = 1s}), "accepted");
}

}  // namespace
