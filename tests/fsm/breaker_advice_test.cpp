// SPDX-License-Identifier: BSL-1.0
//
// What a breaker does with the advice of others.
#include <chrono>

#include <gtest/gtest.h>

#include "fsm/breaker_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker_mode;
using redoubt::breaker_outcome;
using redoubt::breaker_phase;
using redoubt::breaker_settings;
using redoubt::errc;
using redoubt::time_point;
using rig = redoubt::testing::breaker_rig;

time_point const start{1h};

breaker_settings plain() {
  breaker_settings s;
  s.consecutive = 3;
  s.open = {.floor = 1s, .base = 1s, .cap = 1s};
  s.trial_limit = 100ms;
  return s;
}

bool advise(rig& b, time_point until, time_point now) {
  bool const opened = b.machine.advise(until, now, b.random);
  b.collect();
  return opened;
}

TEST(breaker_advice, C95_opens_for_one_period_and_ends_in_a_trial) {
  rig b(plain());
  auto const before = b.ask(start);
  EXPECT_TRUE(advise(b, start + 1h, start));
  EXPECT_EQ(b.machine.snapshot().cause, errc::breaker_open);
  auto const no = b.ask(start + 400ms);
  EXPECT_FALSE(no.admitted);
  EXPECT_EQ(no.cause, errc::breaker_open);
  EXPECT_EQ(no.retry_after, 600ms) << "its own period, not the hour";
  b.end(before.pass, breaker_outcome::success, start + 500ms);
  EXPECT_EQ(b.phase(), breaker_phase::open) << "an ordinary opening: older results are stale";

  auto const trial = b.ask(start + 1s);
  EXPECT_TRUE(trial.admitted);
  EXPECT_NE(trial.pass.trial, 0u);
  EXPECT_FALSE(b.ask(start + 1s).admitted);
  b.end(trial.pass, breaker_outcome::success, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  EXPECT_EQ(b.machine.snapshot().cause, errc::unspecified);
  EXPECT_EQ(b.machine.snapshot().opened, 1u);
  EXPECT_EQ(b.machine.snapshot().advised, 1u);
}

TEST(breaker_advice, C95_not_beyond_the_time_it_is_given_for) {
  rig b(plain());
  EXPECT_TRUE(advise(b, start + 300ms, start));
  EXPECT_EQ(b.ask(start).retry_after, 300ms);
  EXPECT_NE(b.ask(start + 300ms).pass.trial, 0u);
}

TEST(breaker_advice, C95_a_failed_trial_is_its_own_news) {
  rig b(plain());
  EXPECT_TRUE(advise(b, start + 1h, start));
  auto const trial = b.ask(start + 1s);
  b.end(trial.pass, breaker_outcome::failure, start + 1s, {}, errc::connection_refused);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_EQ(b.machine.snapshot().cause, errc::connection_refused);
  EXPECT_EQ(b.machine.snapshot().advised, 1u);
  EXPECT_EQ(b.machine.snapshot().opened, 2u);
}

TEST(breaker_advice, C95_when_it_is_not_taken) {
  auto const nothing = [](rig& b, time_point until, time_point now) {
    auto const before = b.machine.snapshot();
    EXPECT_FALSE(advise(b, until, now));
    EXPECT_EQ(b.machine.snapshot().phase, before.phase);
    EXPECT_EQ(b.machine.snapshot().generation, before.generation);
    EXPECT_EQ(b.machine.snapshot().advised, before.advised);
  };
  rig late(plain());
  nothing(late, start, start);
  nothing(late, start - 1s, start);

  auto s = plain();
  s.follow_advice = false;
  rig alone(s);
  nothing(alone, start + 1h, start);
  for (auto const mode : {breaker_mode::forced_closed, breaker_mode::forced_open}) {
    s = plain();
    s.mode = mode;
    rig by_hand(s);
    nothing(by_hand, start + 1h, start);
  }

  rig open(plain());
  for (int i = 0; i < 3; ++i) open.call(breaker_outcome::failure, start);
  nothing(open, start + 1h, start);
  auto const trial = open.ask(start + 1s);
  nothing(open, start + 1h, start + 1s);
  open.end(trial.pass, breaker_outcome::success, start + 1s);
  EXPECT_EQ(open.phase(), breaker_phase::closed) << "the trial was left alone";

  s = plain();
  s.ramp = redoubt::breaker_ramp{.start = 0.5, .length = 1s};
  rig recovering(s);
  for (int i = 0; i < 3; ++i) recovering.call(breaker_outcome::failure, start);
  recovering.call(breaker_outcome::success, start + 1s);
  ASSERT_EQ(recovering.phase(), breaker_phase::recovering);
  nothing(recovering, start + 1h, start + 1500ms);
  EXPECT_TRUE(advise(recovering, start + 1h, start + 2s)) << "it has recovered by then";
}

TEST(breaker_advice, C95_a_breaker_that_only_measures_opens_and_refuses_nobody) {
  auto s = plain();
  s.mode = breaker_mode::metrics_only;
  rig b(s);
  EXPECT_TRUE(advise(b, start + 1h, start));
  EXPECT_TRUE(b.ask(start).admitted);
  EXPECT_EQ(b.machine.snapshot().would_refuse, 1u);
}

TEST(breaker_advice, takes_the_end_of_time) {
  rig b(plain());
  EXPECT_TRUE(advise(b, time_point::max(), start));
  EXPECT_EQ(b.ask(start).retry_after, 1s);
}

}  // namespace
