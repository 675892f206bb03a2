// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/breaker.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/time_limit.hpp>

#include "recording_sink.hpp"
#include "unit/guard_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker;
using redoubt::breaker_capability;
using redoubt::breaker_phase;
using redoubt::effect;
using redoubt::errc;
using redoubt::event_kind;
using redoubt::failure;
using redoubt::failure_class;
using redoubt::result;
using redoubt::server_errc;
using redoubt::time_point;
using redoubt::testing::world;
using test::failed;
using test::told;

time_point const start_time{1h};

breaker::options plain() {
  breaker::options o;
  o.name = "payments";
  o.settings.consecutive = 3;
  o.settings.open = {.floor = 1s, .base = 1s, .cap = 1s};
  o.settings.trial_limit = 100ms;
  return o;
}

void fail(breaker& b, int times, time_point now = start_time, errc code = errc::connection_lost) {
  for (int i = 0; i < times; ++i) {
    auto permit = b.try_acquire(now);
    ASSERT_TRUE(permit);
    permit->record(result<int>(failed(code)), now);
  }
}

TEST(breaker, C46_a_refusal_is_ours_and_says_why_and_when_to_come_back) {
  breaker b(plain());
  fail(b, 3, start_time, errc::connection_refused);
  auto const no = b.try_acquire(start_time + 300ms);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::breaker_open);
  EXPECT_EQ(no.error().cause, errc::connection_refused);
  EXPECT_EQ(no.error().effect, effect::none);
  EXPECT_EQ(no.error().retry_after, 700ms);
  EXPECT_EQ(no.error().group(), failure_class::saturated);
  EXPECT_EQ(no.error().message(),
            "circuit breaker open: payments, because of: connection refused; try again in 700 ms");
}

TEST(breaker, C80_a_refusal_outlives_it) {
  auto b = std::make_unique<breaker>(plain());
  fail(*b, 3);
  auto const no = b->try_acquire(start_time);
  b.reset();
  ASSERT_FALSE(no);
  auto const kept = no.error();
  ASSERT_TRUE(kept.detail);
  EXPECT_EQ(kept.detail->note, "payments");
}

TEST(breaker, reads_the_clock_once_per_call_and_where_slow_calls_count_twice) {
  int readings = 0;
  auto const clock = [&readings] { return ++readings, start_time; };
  auto const call = [&](breaker& b) {
    readings = 0;
    auto permit = b.try_acquire_by(clock);
    ASSERT_TRUE(permit);
    auto const asked = readings;
    permit->record_by(result<int>(1), clock);
    EXPECT_LE(asked, readings);
  };
  auto o = plain();
  breaker in_a_row(o);
  call(in_a_row);
  EXPECT_EQ(readings, 0);
  o.settings.ratio = redoubt::breaker_ratio{};
  breaker windowed(o);
  call(windowed);
  EXPECT_EQ(readings, 1);
  fail(windowed, 1);  // the success after it takes the slow way
  call(windowed);
  EXPECT_EQ(readings, 1);
  o.settings.ratio->slow = 0.5;
  breaker timed(o);
  call(timed);
  EXPECT_EQ(readings, 2);
  fail(windowed, 3);
  readings = 0;
  EXPECT_FALSE(windowed.try_acquire_by(clock));
  EXPECT_EQ(readings, 1);
}

TEST(breaker, E_10_C87_ten_thousand_concurrent_callers_at_half_open_and_one_trial) {
  breaker b(plain());
  fail(b, 3);
  std::atomic<int> trials{0}, refused{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  std::vector<breaker::permit> held;
  std::mutex mutex;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 1250; ++i) {
        auto permit = b.try_acquire(start_time + 1s);
        if (!permit) {
          ++refused;
          continue;
        }
        ++trials;
        std::scoped_lock const lock(mutex);
        held.push_back(std::move(*permit));
      }
    });
  }
  go = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(trials, 1);
  EXPECT_EQ(refused, 9999);
  EXPECT_EQ(b.snapshot().trials, 1u);
}

TEST(breaker, C88_a_permit_that_vanishes_or_whose_call_threw_gives_the_trial_back) {
  breaker b(plain());
  fail(b, 3);
  try {
    auto permit = b.try_acquire(start_time + 1s);
    ASSERT_TRUE(permit && permit->trial());
    throw std::runtime_error("user code");
  } catch (std::runtime_error const&) {
  }
  EXPECT_EQ(b.snapshot().phase, breaker_phase::half_open);
  auto next = b.try_acquire(start_time + 1s);
  ASSERT_TRUE(next && next->trial());
  EXPECT_EQ(next->limit().at(), start_time + 1100ms);
  next->record(result<int>(1), start_time + 1s);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::closed);
}

TEST(breaker, C90_transitions_are_told_once_and_in_order) {
  test::recording_sink events;
  auto o = plain();
  o.events = &events;
  o.settings.ramp = redoubt::breaker_ramp{.start = 0.5, .length = 1s};
  breaker b(o);
  std::vector<breaker::permit> early;
  for (int i = 0; i < 5; ++i) early.push_back(*b.try_acquire(start_time));
  fail(b, 3);
  for (auto& p : early) p.record(result<int>(failed(errc::connection_lost)), start_time);
  b.try_acquire(start_time + 1s)->record(result<int>(1), start_time + 1s);
  (void)b.try_acquire(start_time + 3s);
  ASSERT_EQ(events.all.size(), 4u);
  EXPECT_EQ(events.all[0].kind, event_kind::breaker_opened);
  EXPECT_EQ(events.all[0].cause.code, errc::connection_lost);
  EXPECT_EQ(events.all[0].source, "payments");
  EXPECT_EQ(events.all[1].kind, event_kind::breaker_trying);
  EXPECT_EQ(events.all[2].kind, event_kind::breaker_recovering);
  EXPECT_EQ(events.all[3].kind, event_kind::breaker_closed);
}

TEST(breaker, a_listener_may_use_the_breaker) {
  struct asking final : redoubt::event_sink {
    void on(redoubt::event const&) noexcept override { seen = b->settings().trial_limit; }
    breaker* b = nullptr;
    redoubt::duration seen{};
  } listener;
  auto o = plain();
  o.events = &listener;
  breaker b(o);
  listener.b = &b;
  fail(b, 3);
  EXPECT_EQ(listener.seen, 100ms) << "no lock was held";
}

TEST(breaker, reads_and_writes_of_one_server_have_a_breaker_each) {
  auto o = plain();
  o.settings.watches = breaker_capability::reads;
  breaker reads(o);
  o.settings.watches = breaker_capability::writes;
  breaker writes(o);
  failure readonly = failed(errc::server_error);
  readonly.server = server_errc::readonly;
  for (int i = 0; i < 3; ++i) {
    reads.try_acquire(start_time)->record(result<int>(readonly), start_time);
    writes.try_acquire(start_time)->record(result<int>(readonly), start_time);
  }
  EXPECT_EQ(reads.snapshot().phase, breaker_phase::closed);
  EXPECT_EQ(writes.snapshot().phase, breaker_phase::open);
}

TEST(breaker, C95_a_bad_path_of_one_node_opens_nobody_elses_breaker) {
  breaker node_1(plain()), node_2(plain());
  fail(node_1, 3);
  EXPECT_EQ(node_1.snapshot().phase, breaker_phase::open);
  EXPECT_TRUE(node_2.try_acquire(start_time))
      << "state is per object: no store that could be down or slow is asked";
}

TEST(breaker, C92_a_silent_dependency_opens_it_and_a_full_bulkhead_does_not) {
  world w;
  redoubt::bulkhead slots({.name = "slots", .slots = 8, .waiters = 0});
  breaker b(plain());
  test::manual_operation silent;
  auto const s =
      redoubt::start_plain<int>(silent.operation()) | through(slots) | redoubt::limit(100ms) | through(b);

  std::vector<redoubt::bulkhead::permit> all;
  while (auto held = slots.acquire_at_once()) all.push_back(std::move(held));
  for (int i = 0; i < 1000; ++i) {
    told t;
    call(w, s, {}, t);
    w.run_for(1ms);
    ASSERT_EQ(t.code(), errc::bulkhead_full);
  }
  EXPECT_EQ(b.snapshot().phase, breaker_phase::closed);
  EXPECT_EQ(b.snapshot().neutral, 1000u);

  all.clear();
  for (int i = 0; i < 4; ++i) {
    told t;
    call(w, s, {}, t);
    auto const begin = w.now();
    w.run_for(101ms);
    EXPECT_EQ(t.code(), i < 3 ? errc::limit_exceeded : errc::breaker_open);
    EXPECT_EQ(t.at - begin, i < 3 ? 100ms : 0ms);
  }
  EXPECT_EQ(b.snapshot().opened, 1u);
  EXPECT_EQ(slots.snapshot().used, 3u) << "what does not answer keeps its slot until it really ends";
}

TEST(breaker, C96_a_limit_that_ends_while_waiting_for_a_slot_is_saturation) {
  world w;
  redoubt::bulkhead slots({.slots = 1, .waiters = 4, .max_wait = 10s});
  redoubt::time_limit limit({.name = "db", .limit = 100ms});
  breaker b(plain());
  auto held = slots.try_acquire();
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | through(slots) | through(limit) | through(b);
  for (int i = 0; i < 4; ++i) {
    told t;
    call(w, s, {}, t);
    w.run_for(101ms);
    ASSERT_TRUE(t.value && !t.value->has_value());
    EXPECT_EQ(t.value->error().group(), failure_class::saturated);
    EXPECT_EQ(t.value->error().effect, effect::none);
  }
  EXPECT_EQ(b.snapshot().phase, breaker_phase::closed);
  EXPECT_EQ(b.snapshot().neutral, 4u);
  EXPECT_EQ(op.started(), 0u);
  EXPECT_EQ(slots.snapshot().waiting, 0u) << "nobody waits any more";
  held->release();
  EXPECT_EQ(slots.snapshot().used, 0u);
}

TEST(breaker, the_trial_has_its_own_shorter_limit) {
  world w;
  breaker b(plain());
  fail(b, 3, w.now());
  w.run_for(1s);
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | redoubt::limit(5s) | through(b);
  told t;
  call(w, s, {}, t);
  auto const begin = w.now();
  w.run_for(200ms);
  EXPECT_EQ(t.at - begin, 100ms);
  EXPECT_EQ(b.snapshot().phase, breaker_phase::open);
}

TEST(breaker, C95_an_advice_is_told_counted_and_refuses_with_its_own_cause) {
  test::recording_sink events;
  auto o = plain();
  o.events = &events;
  breaker b(o);
  EXPECT_TRUE(b.advise_open(start_time + 1h, start_time));
  EXPECT_FALSE(b.advise_open(start_time + 1h, start_time)) << "it is open already";
  auto const no = b.try_acquire(start_time);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().cause, errc::breaker_open);
  EXPECT_EQ(no.error().retry_after, 1s);
  EXPECT_EQ(b.snapshot().advised, 1u);
  b.try_acquire(start_time + 1s)->record(result<int>(1), start_time + 1s);
  ASSERT_EQ(events.all.size(), 3u);
  EXPECT_EQ(events.all[0].kind, event_kind::breaker_opened);
  EXPECT_EQ(events.all[0].cause.code, errc::breaker_open);
  EXPECT_EQ(events.all[2].kind, event_kind::breaker_closed);
}

TEST(breaker, names_the_setting_that_is_out_of_range) {
  auto o = plain();
  o.settings.consecutive = 0;
  EXPECT_THROW(breaker{o}, redoubt::option_error);
}

}  // namespace
