// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_state.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "fsm/breaker_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker_capability;
using redoubt::breaker_mode;
using redoubt::breaker_outcome;
using redoubt::breaker_phase;
using redoubt::breaker_settings;
using redoubt::errc;
using redoubt::failure;
using redoubt::server_errc;
using redoubt::time_point;
using rig = redoubt::testing::breaker_rig;

constexpr auto success = breaker_outcome::success;
constexpr auto failed = breaker_outcome::failure;
constexpr auto neutral = breaker_outcome::neutral;
time_point const start{1h};

/// Opens after three, for exactly a second.
breaker_settings plain() {
  breaker_settings s;
  s.consecutive = 3;
  s.open = {.floor = 1s, .base = 1s, .cap = 1s};
  s.trial_limit = 100ms;
  return s;
}

void open_it(rig& b, time_point now = start) {
  while (b.phase() == breaker_phase::closed) b.call(failed, now);
  ASSERT_EQ(b.phase(), breaker_phase::open);
}

TEST(breaker_state, E_10_opens_after_failures_in_a_row_and_a_success_starts_anew) {
  rig b(plain());
  for (auto const o : {failed, failed, success, failed, failed}) b.call(o, start);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  b.call(failed, start, {}, errc::connection_refused);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  ASSERT_EQ(b.transitions.size(), 1u);
  EXPECT_EQ(b.transitions[0].to, breaker_phase::open);
  EXPECT_EQ(b.transitions[0].cause, errc::connection_refused);
}

TEST(breaker_state, E_11_open_refuses_with_the_time_left_and_the_cause) {
  rig b(plain());
  open_it(b);
  auto const no = b.ask(start + 400ms);
  EXPECT_FALSE(no.admitted);
  EXPECT_EQ(no.retry_after, 600ms);
  EXPECT_EQ(no.cause, errc::connection_lost);
  EXPECT_EQ(b.machine.next_wakeup(), start + 1s);
  EXPECT_EQ(b.machine.snapshot().refused, 1u);
}

TEST(breaker_state, E_10_C87_exactly_one_trial_of_ten_thousand) {
  rig b(plain());
  open_it(b);
  int trials = 0;
  for (int i = 0; i < 10'000; ++i) trials += b.ask(start + 1s).admitted ? 1 : 0;
  EXPECT_EQ(trials, 1);
  EXPECT_EQ(b.machine.snapshot().trials, 1u);
  EXPECT_EQ(b.ask(start + 1010ms).retry_after, 140ms) << "the trial's limit and its grace";
}

TEST(breaker_state, E_10_a_trial_decides) {
  rig b(plain());
  open_it(b);
  auto const lost = b.ask(start + 1s);
  EXPECT_EQ(lost.limit.at(), start + 1100ms);
  b.end(lost.pass, failed, start + 1050ms);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_FALSE(b.ask(start + 2049ms).admitted);
  auto const won = b.ask(start + 2050ms);
  b.end(won.pass, success, start + 2060ms);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  EXPECT_EQ(b.transitions.size(), 5u) << "open, half-open, open, half-open, closed";
}

TEST(breaker_state, C88_a_cancelled_trial_leaves_it_half_open_and_frees_the_lease) {
  rig b(plain());
  open_it(b);
  auto const trial = b.ask(start + 1s);
  EXPECT_FALSE(b.ask(start + 1001ms).admitted);
  b.end(trial.pass, neutral, start + 1002ms);
  EXPECT_EQ(b.phase(), breaker_phase::half_open);
  auto const next = b.ask(start + 1002ms);
  EXPECT_TRUE(next.admitted);
  EXPECT_NE(next.pass.trial, trial.pass.trial);
  b.end(trial.pass, success, start + 1003ms);
  EXPECT_EQ(b.phase(), breaker_phase::half_open) << "the trial that was given up says nothing any more";
}

TEST(breaker_state, C88_an_abandoned_trial_frees_the_lease_without_a_clock) {
  rig b(plain());
  open_it(b);
  auto const trial = b.ask(start + 1s);
  b.abandon(trial.pass);
  EXPECT_EQ(b.phase(), breaker_phase::half_open);
  auto const next = b.ask(start + 1001ms);
  EXPECT_TRUE(next.admitted);
  b.abandon(trial.pass);
  EXPECT_FALSE(b.ask(start + 1002ms).admitted) << "only its own lease";
  EXPECT_EQ(b.machine.snapshot().stale, 1u);
}

TEST(breaker_state, C88_a_trial_that_never_reports_counts_as_failed_when_its_lease_ends) {
  rig b(plain());
  open_it(b);
  auto const trial = b.ask(start + 1s);
  EXPECT_EQ(b.machine.next_wakeup(), start + 1150ms);
  EXPECT_FALSE(b.ask(start + 1150ms).admitted);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_EQ(b.transitions.back().cause, errc::limit_exceeded);
  b.end(trial.pass, success, start + 1200ms);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_EQ(b.machine.snapshot().lost_trials, 1u);
  EXPECT_EQ(b.machine.snapshot().stale, 1u);
}

TEST(breaker_state, C88_a_late_success_of_a_trial_is_too_late_even_if_nobody_asked_meanwhile) {
  rig b(plain());
  open_it(b);
  auto const trial = b.ask(start + 1s);
  b.end(trial.pass, success, start + 1150ms);
  EXPECT_EQ(b.phase(), breaker_phase::open);
}

TEST(breaker_state, C90_results_from_before_the_opening_change_nothing_and_are_counted) {
  rig b(plain());
  std::vector<redoubt::breaker_pass> early;
  for (int i = 0; i < 10; ++i) early.push_back(b.ask(start).pass);
  open_it(b);
  for (std::size_t i = 0; i < 4; ++i) b.end(early[i], i % 2 ? success : failed, start + 500ms);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  auto const trial = b.ask(start + 1s);
  for (std::size_t i = 4; i < 10; ++i) b.end(early[i], i % 2 ? success : failed, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::half_open);
  EXPECT_EQ(b.machine.snapshot().stale, 10u);
  EXPECT_EQ(b.machine.snapshot().opened, 1u);
  b.end(trial.pass, success, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  EXPECT_EQ(std::count_if(b.transitions.begin(), b.transitions.end(),
                          [](auto const& t) { return t.to == breaker_phase::open; }),
            1);
}

TEST(breaker_state, C92_neutral_results_never_open_and_never_hide_failures) {
  rig b(plain());
  for (int i = 0; i < 1000; ++i) b.call(neutral, start);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  for (auto const o : {failed, neutral, failed, neutral, failed}) b.call(o, start);
  EXPECT_EQ(b.phase(), breaker_phase::open);
}

TEST(breaker_state, opens_by_ratio_only_with_enough_calls_in_the_window) {
  auto s = plain();
  s.consecutive.reset();
  s.ratio = redoubt::breaker_ratio{.failures = 0.5, .minimum_calls = 10, .window = 10s};
  rig b(s);
  for (int i = 0; i < 9; ++i) b.call(failed, start);
  EXPECT_EQ(b.phase(), breaker_phase::closed) << "nine are too few";
  auto const later = start + 11s;
  for (int i = 0; i < 6; ++i) b.call(success, later);
  for (int i = 0; i < 5; ++i) b.call(failed, later);
  EXPECT_EQ(b.phase(), breaker_phase::closed) << "the nine have left the window; five of eleven";
  b.call(failed, later);
  EXPECT_EQ(b.phase(), breaker_phase::open);
}

TEST(breaker_state, slow_calls_count_although_they_succeed) {
  auto s = plain();
  s.ratio = redoubt::breaker_ratio{.slow = 0.5, .slow_after = 100ms, .minimum_calls = 4};
  rig b(s);
  for (int i = 0; i < 2; ++i) b.call(success, start, 100ms);
  b.call(success, start, 101ms);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  b.call(success, start, 1s);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_EQ(b.transitions.back().cause, errc::limit_exceeded);
  EXPECT_EQ(b.machine.snapshot().slow, 2u);
}

TEST(breaker_state, the_open_period_grows_with_jitter_and_starts_anew_after_it_worked) {
  auto s = plain();
  s.consecutive = 1;
  s.open = {.floor = 100ms, .base = 1s, .cap = 4s};
  auto longest = [&](int openings) {
    redoubt::duration shortest = 1h, out{};
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      rig b(s);
      b.random = redoubt::random_source(seed);
      auto now = start;
      for (int i = 0; i < openings; ++i) {
        b.call(failed, now);
        if (i + 1 < openings) now = b.machine.next_wakeup();
      }
      auto const period = b.machine.next_wakeup() - now;
      out = std::max(out, period);
      shortest = std::min(shortest, period);
    }
    EXPECT_GE(shortest, 100ms);
    EXPECT_LT(shortest, 400ms) << "full jitter starts at the floor";
    return out;
  };
  auto const near = [](redoubt::duration got, redoubt::duration limit) {
    return got <= limit && got > limit - limit / 20;
  };
  EXPECT_TRUE(near(longest(1), 1s));
  EXPECT_TRUE(near(longest(2), 2s));
  EXPECT_TRUE(near(longest(3), 4s));
  EXPECT_TRUE(near(longest(9), 4s)) << "the cap";

  rig b(s);
  auto now = start;
  for (int i = 0; i < 5; ++i, now = b.machine.next_wakeup()) b.call(failed, now);
  b.call(success, now);
  b.call(failed, now);
  EXPECT_LE(b.machine.next_wakeup() - now, 1s);
}

TEST(breaker_state, D_08_after_closing_a_growing_share_passes) {
  auto s = plain();
  s.ramp = redoubt::breaker_ramp{.start = 0.1, .length = 10s};
  rig b(s);
  open_it(b);
  b.call(success, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::recovering);
  auto share = [&](time_point at) {
    int passed = 0;
    for (int i = 0; i < 1000; ++i) passed += b.ask(at).admitted ? 1 : 0;
    return passed;
  };
  EXPECT_NEAR(share(start + 1s), 100, 2);
  EXPECT_NEAR(share(start + 6s), 550, 2);
  auto const no = b.ask(start + 6s);
  EXPECT_TRUE(no.admitted || no.retry_after == 1s);
  EXPECT_EQ(share(start + 11s), 1000);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
  EXPECT_EQ(b.transitions.back().to, breaker_phase::closed);
}

TEST(breaker_state, failing_while_it_recovers_opens_it_for_longer) {
  auto s = plain();
  s.open = {.floor = 1s, .base = 1s, .cap = 8s};
  s.ramp = redoubt::breaker_ramp{.start = 1.0, .length = 10s};
  bool longer = false;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    rig b(s);
    b.random = redoubt::random_source(seed);
    open_it(b);
    b.call(success, start + 1s);
    for (int i = 0; i < 3; ++i) b.call(failed, start + 2s);
    ASSERT_EQ(b.phase(), breaker_phase::open);
    longer = longer || b.machine.next_wakeup() > start + 3s;
  }
  EXPECT_TRUE(longer);
}

TEST(breaker_state, metrics_only_changes_its_state_but_refuses_nobody) {
  auto s = plain();
  s.mode = breaker_mode::metrics_only;
  rig b(s);
  open_it(b);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(b.ask(start).admitted);
  b.call(success, start);
  EXPECT_EQ(b.phase(), breaker_phase::open) << "what it would have refused is no trial";
  EXPECT_EQ(b.machine.snapshot().would_refuse, 6u);
  EXPECT_EQ(b.machine.snapshot().refused, 0u);
  b.call(success, start + 1s);
  EXPECT_EQ(b.phase(), breaker_phase::closed);
}

TEST(breaker_state, forced_modes_hold_whatever_happens_and_end_with_an_empty_breaker) {
  rig b(plain());
  auto s = plain();
  s.mode = breaker_mode::forced_open;
  auto const before = b.ask(start).pass;
  b.machine.configure(s);
  EXPECT_FALSE(b.ask(start + 1h).admitted);
  EXPECT_EQ(b.ask(start).retry_after, 0s);
  s.mode = breaker_mode::forced_closed;
  b.machine.configure(s);
  for (int i = 0; i < 100; ++i) b.call(failed, start);
  EXPECT_TRUE(b.ask(start).admitted);
  b.machine.configure(plain());
  b.end(before, failed, start);
  EXPECT_EQ(b.machine.snapshot().stale, 1u);
  b.call(failed, start);
  b.call(failed, start);
  EXPECT_EQ(b.phase(), breaker_phase::closed) << "what was counted under force is forgotten";
}

TEST(breaker_state, settings_change_live_and_a_wrong_one_changes_nothing) {
  rig b(plain());
  b.call(failed, start);
  auto s = plain();
  s.consecutive = 2;
  b.machine.configure(s);
  s.consecutive = 0;
  EXPECT_THROW(b.machine.configure(s), redoubt::option_error);
  b.call(failed, start);
  EXPECT_EQ(b.phase(), breaker_phase::open);
  EXPECT_EQ(b.machine.settings().consecutive, 2u);

  rig lowered(plain());
  lowered.call(failed, start);
  lowered.call(failed, start);
  s.consecutive = 1;
  lowered.machine.configure(s);
  lowered.collect();
  EXPECT_EQ(lowered.phase(), breaker_phase::closed) << "nothing has happened since";
  lowered.call(failed, start);
  EXPECT_EQ(lowered.phase(), breaker_phase::open);
}

TEST(breaker_state, C93_which_failures_count) {
  auto counts = [](errc code, server_errc server, breaker_capability what) {
    failure f;
    f.code = code;
    f.server = server;
    return redoubt::breaker_outcome_of(f, what);
  };
  auto own = [&](errc code) { return counts(code, server_errc::none, breaker_capability::writes); };
  auto said = [&](server_errc e, breaker_capability what = breaker_capability::writes) {
    return counts(errc::server_error, e, what);
  };
  for (auto const e :
       {errc::connection_refused, errc::connection_lost, errc::deadline_exceeded, errc::protocol_error,
        errc::connect_timeout, errc::resolve_failed, errc::limit_exceeded}) {
    EXPECT_EQ(own(e), failed) << e;
  }
  for (auto const e :
       {server_errc::loading, server_errc::busy, server_errc::masterdown, server_errc::max_clients}) {
    EXPECT_EQ(said(e), failed) << e;
    EXPECT_EQ(said(e, breaker_capability::reads), failed) << e;
  }
  for (auto const e : {server_errc::clusterdown, server_errc::readonly, server_errc::oom,
                       server_errc::misconf, server_errc::noreplicas}) {
    EXPECT_EQ(said(e), failed) << e;
    EXPECT_EQ(said(e, breaker_capability::reads), success) << e;
  }
  for (auto const e : {server_errc::wrongtype, server_errc::err, server_errc::noscript, server_errc::moved,
                       server_errc::ask, server_errc::noperm, server_errc::execabort}) {
    EXPECT_EQ(said(e), success) << e;
  }
  for (auto const e : {errc::bulkhead_full, errc::queue_full, errc::breaker_open, errc::cancelled,
                       errc::bad_option, errc::flight_full, errc::refused_command, errc::load_failed}) {
    EXPECT_EQ(own(e), neutral) << e;
  }
  for (auto const e : {server_errc::noauth, server_errc::wrongpass}) EXPECT_EQ(said(e), neutral) << e;
  EXPECT_EQ(own(errc::unexpected_reply), success);
  failure rejected;
  rejected.code = errc::connection_refused;
  rejected.rejected = true;  // the client is backing off: our own refusal
  EXPECT_EQ(redoubt::breaker_outcome_of(rejected, breaker_capability::writes), neutral);
}

TEST(breaker_state, names_the_setting_that_is_out_of_range) {
  auto field = [](auto change) {
    breaker_settings s;
    change(s);
    try {
      s.validate();
    } catch (redoubt::option_error const& e) {
      return e.field();
    }
    return std::string();
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& s) { s.consecutive.reset(); }), "consecutive");
  EXPECT_EQ(field([](auto& s) { s.open.base = 60s; }), "open.base");
  EXPECT_EQ(field([](auto& s) { s.open.floor = 0s; }), "open.floor");
  EXPECT_EQ(field([](auto& s) { s.trial_limit = 0s; }), "trial_limit");
  EXPECT_EQ(field([](auto& s) { s.ratio = redoubt::breaker_ratio{.failures = 0}; }), "ratio.failures");
  EXPECT_EQ(field([](auto& s) { s.ratio = redoubt::breaker_ratio{.window = 1ms}; }), "ratio.window");
  EXPECT_EQ(field([](auto& s) { s.ramp = redoubt::breaker_ramp{.start = 2}; }), "ramp.start");
}

}  // namespace
