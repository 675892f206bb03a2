// SPDX-License-Identifier: BSL-1.0
//
// What a breaker counts with a rolling window, and what it does not ask for.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fsm/breaker_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker_outcome;
using redoubt::breaker_phase;
using redoubt::breaker_settings;
using redoubt::time_point;
using rig = redoubt::testing::breaker_rig;

constexpr auto success = breaker_outcome::success;
constexpr auto failed = breaker_outcome::failure;
time_point const start{1h};

breaker_settings plain() {
  breaker_settings s;
  s.consecutive = 3;
  return s;
}

TEST(breaker_counts, successes_are_counted_once_wherever_the_window_has_them) {
  auto s = plain();
  s.ratio = redoubt::breaker_ratio{.window = 1s};
  rig b(s);
  for (int i = 0; i < 50; ++i) b.call(success, start + i * 70ms);  // through three windows
  b.call(failed, start + 4s);
  b.call(success, start + 4s);  // one at a time
  b.call(success, start + 2s);  // a window late
  EXPECT_EQ(b.machine.snapshot().succeeded, 52u);
  s.ratio->window = 2s;
  b.machine.configure(s);
  EXPECT_EQ(b.machine.snapshot().succeeded, 52u);
  EXPECT_EQ(b.machine.snapshot().failed, 1u);
}

TEST(breaker_counts, without_a_share_for_slow_calls_nobody_asks_how_long_they_took) {
  auto s = plain();
  s.ratio = redoubt::breaker_ratio{.slow_after = 100ms, .minimum_calls = 1};
  rig b(s);
  EXPECT_TRUE(b.machine.counts_over_time());
  EXPECT_FALSE(b.machine.counts_slow_calls());
  for (int i = 0; i < 20; ++i) b.call(success, start, 1h);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  EXPECT_EQ(b.machine.snapshot().slow, 0u);
}

// Threads count in different places; the share is of all of them.
TEST(breaker_counts, the_share_is_of_the_calls_of_all_threads) {
  auto s = plain();
  s.consecutive.reset();
  s.ratio = redoubt::breaker_ratio{.failures = 0.5, .minimum_calls = 1, .window = 10s};
  rig b(s);
  constexpr int threads = 20;
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        auto const pass = b.machine.pass_at_once();
        ASSERT_TRUE(pass);
        EXPECT_TRUE(b.machine.succeed_at_once(*pass, {}, start + t * 10ms));
      }
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(b.machine.snapshot().succeeded, 2000u);
  for (int i = 0; i < 1999; ++i) b.call(failed, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  b.call(failed, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::open) << "2000 of 4000";
  EXPECT_EQ(b.machine.snapshot().succeeded, 2000u);
}

// While calls move out of the window a count may be late, but it never falls and nothing is lost.
TEST(breaker_counts, no_success_is_lost_while_the_window_rolls) {
  auto s = plain();
  s.ratio = redoubt::breaker_ratio{.window = 10ms};
  redoubt::breaker_state machine(s);
  constexpr std::uint64_t threads = 3, calls = 5000;
  std::atomic<std::uint64_t> running{threads};
  std::vector<std::thread> callers;
  for (std::uint64_t t = 0; t < threads; ++t) {
    callers.emplace_back([&] {
      for (std::uint64_t i = 0; i < calls; ++i) {
        auto const pass = machine.pass_at_once();
        ASSERT_TRUE(pass);
        EXPECT_TRUE(machine.succeed_at_once(*pass, {}, start + i * 100us));
      }
      --running;
    });
  }
  std::uint64_t seen = 0;
  while (running > 0) {
    auto const count = machine.snapshot().succeeded;
    EXPECT_LE(seen, count);
    seen = count;
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(machine.snapshot().succeeded, threads * calls);
}

// The window's ticks wrap, after 50 days in the shortest one; machines are up for longer, and breakers idle.
TEST(breaker_counts, every_call_counts_however_long_nobody_has_called) {
  auto s = plain();
  s.consecutive.reset();
  s.ratio = redoubt::breaker_ratio{.failures = 0.5, .minimum_calls = 6, .window = 10ms};
  auto const opens_by_half = [](rig& b, time_point at) {
    for (int i = 0; i < 3; ++i) b.call(success, at);
    for (int i = 0; i < 2; ++i) b.call(failed, at);
    EXPECT_EQ(b.phase(), breaker_phase::closed);
    b.call(failed, at);
    EXPECT_EQ(b.phase(), breaker_phase::open) << "3 of 6";
  };
  for (auto const days : {0, 24, 25, 30, 49, 50, 51, 75, 1000}) {
    SCOPED_TRACE(days);
    rig young(s);
    opens_by_half(young, start + days * 24h);
    rig idle(s);
    for (int i = 0; i < 10; ++i) {
      for (auto const outcome : {success, success, failed}) idle.call(outcome, start + i * 1ms);
    }
    opens_by_half(idle, start + days * 24h + 1s);
  }
}

}  // namespace
