// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/retry_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;
using kind = retry_decision::kind;

time_point const start{1h};

failure failed(errc code, effect what = effect::none, server_errc server = server_errc::none) {
  failure f;
  f.code = code;
  f.effect = what;
  f.server = server;
  return f;
}
failure said(server_errc server) { return failed(errc::server_error, effect::none, server); }

retry_options two() { return {.retries = 2, .total = 1s}; }

kind decide(failure const& f, repeat allowed = repeat::not_executed) {
  random_source random(1);
  retry_plan plan(two(), start, {});
  return plan.after(f, allowed, start, random).what;
}

TEST(retry_plan, A_04_A_05_nothing_is_repeated_unless_asked_for) {
  random_source random(1);
  retry_plan plan(retry_options{}, start, {});
  EXPECT_EQ(plan.after(failed(errc::connection_refused), repeat::idempotent, start, random).what,
            kind::none_left);
}

TEST(retry_plan, E_04_what_was_not_executed_may_be_repeated) {
  for (auto code :
       {errc::connection_refused, errc::connect_timeout, errc::resolve_failed, errc::connect_failed,
        errc::deadline_exceeded, errc::connection_lost, errc::connection_stalled}) {
    EXPECT_EQ(decide(failed(code)), kind::again) << code;
  }
  for (auto code : {server_errc::loading, server_errc::busy, server_errc::masterdown, server_errc::tryagain,
                    server_errc::max_clients, server_errc::readonly}) {
    EXPECT_EQ(decide(said(code)), kind::again) << code;
  }
}

TEST(retry_plan, C31_what_may_have_been_executed_is_repeated_only_when_declared_idempotent) {
  for (auto code : {errc::deadline_exceeded, errc::connection_lost}) {
    EXPECT_EQ(decide(failed(code, effect::unknown)), kind::not_repeatable) << code;
    EXPECT_EQ(decide(failed(code, effect::unknown), repeat::idempotent), kind::again) << code;
  }
}

TEST(retry_plan, C46_mistakes_cancellation_and_our_own_bounds_are_never_repeated) {
  for (auto code :
       {errc::cancelled, errc::bad_option, errc::refused_command, errc::request_too_large,
        errc::unexpected_reply, errc::queue_full, errc::bulkhead_full, errc::closed, errc::protocol_error,
        errc::reply_too_large, errc::retries_exhausted, errc::load_timeout, errc::load_failed}) {
    EXPECT_EQ(decide(failed(code), repeat::idempotent), kind::not_repeatable) << code;
  }
  for (auto code : {server_errc::oom, server_errc::misconf, server_errc::noreplicas, server_errc::clusterdown,
                    server_errc::noauth, server_errc::wrongpass, server_errc::noperm, server_errc::wrongtype,
                    server_errc::err, server_errc::noscript, server_errc::execabort, server_errc::moved}) {
    EXPECT_EQ(decide(said(code), repeat::idempotent), kind::not_repeatable) << code;
  }
}

TEST(retry_plan, C46_an_open_breaker_is_not_asked_again_although_it_says_when) {
  auto open = failed(errc::breaker_open);
  open.rejected = true;
  open.cause = errc::connection_lost;
  open.retry_after = 10ms;
  EXPECT_EQ(decide(open, repeat::idempotent), kind::not_repeatable);
  random_source random(1);
  retry_plan plan(two(), start, {});
  (void)plan.after(open, repeat::idempotent, start, random);
  EXPECT_EQ(plan.sum_up(open, start).cause, errc::connection_lost);
}

TEST(retry_plan, E_05_retry_after_is_obeyed_or_the_operation_given_up) {
  random_source random(1);
  auto f = failed(errc::connection_refused);
  f.rejected = true;  // the client is backing off: our own refusal
  EXPECT_EQ(f.group(), failure_class::saturated);
  EXPECT_EQ(decide(f), kind::not_repeatable);
  f.retry_after = 200ms;
  retry_plan plan(two(), start, {});
  auto const next = plan.after(f, repeat::not_executed, start, random);
  EXPECT_EQ(next.what, kind::again);
  EXPECT_GE(next.at, start + 200ms);
  f.retry_after = 2s;
  EXPECT_EQ(plan.after(f, repeat::not_executed, start, random).what, kind::no_time);
}

TEST(retry_plan, T_5_no_pause_after_the_last_attempt_and_none_that_does_not_fit) {
  random_source random(1);
  retry_plan plan({.retries = 5, .total = 150ms, .floor = 20ms, .pause = {.base = 1ns, .cap = 1ns}}, start,
                  {});
  auto const f = failed(errc::deadline_exceeded);
  EXPECT_EQ(plan.after(f, repeat::not_executed, start + 100ms, random).what, kind::again);
  EXPECT_EQ(plan.after(f, repeat::not_executed, start + 129ms, random).what, kind::again);
  EXPECT_EQ(plan.after(f, repeat::not_executed, start + 131ms, random).what, kind::no_time);
  EXPECT_EQ(plan.after(f, repeat::not_executed, start + 150ms, random).what, kind::no_time);

  retry_plan last({.retries = 1, .total = 1h}, start, {});
  EXPECT_EQ(last.after(f, repeat::not_executed, start, random).what, kind::again);
  EXPECT_EQ(last.after(f, repeat::not_executed, start, random).what, kind::none_left);
}

TEST(retry_plan, the_callers_deadline_tightens_the_total) {
  EXPECT_EQ(retry_plan(two(), start, {}).limit().at(), start + 1s);
  EXPECT_EQ(retry_plan(two(), start, deadline(start + 40ms)).limit().at(), start + 40ms);
  EXPECT_EQ(retry_plan(two(), start, deadline(start + 40s)).limit().at(), start + 1s);
}

TEST(retry_plan, E_06_pauses_are_full_jitter_under_a_doubling_ceiling) {
  duration longest[3]{};
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    random_source random(seed);
    retry_plan plan({.retries = 3, .total = 1h, .pause = {.base = 10ms, .cap = 25ms}}, start, {});
    for (auto& most : longest) {
      auto const next = plan.after(failed(errc::connection_refused), repeat::not_executed, start, random);
      ASSERT_EQ(next.what, kind::again);
      ASSERT_GE(next.at, start);
      most = std::max(most, next.at - start);
    }
  }
  EXPECT_GT(longest[0], 9ms);
  EXPECT_LE(longest[0], 10ms);
  EXPECT_GT(longest[1], 18ms);
  EXPECT_LE(longest[1], 20ms);
  EXPECT_GT(longest[2], 23ms);
  EXPECT_LE(longest[2], 25ms);
}

TEST(retry_plan, a_demoted_primary_is_asked_again_once) {
  random_source random(1);
  retry_plan plan({.retries = 5, .total = 1h}, start, {});
  EXPECT_EQ(plan.after(said(server_errc::readonly), repeat::not_executed, start, random).what, kind::again);
  EXPECT_EQ(plan.after(said(server_errc::readonly), repeat::not_executed, start, random).what,
            kind::not_repeatable);
}

TEST(retry_plan, A_13_the_sum_never_claims_less_than_the_worst_attempt) {
  random_source random(1);
  retry_plan plan(two(), start, {});
  auto sent = failed(errc::deadline_exceeded, effect::unknown);
  sent.attempts = 1;
  EXPECT_EQ(plan.after(sent, repeat::idempotent, start + 100ms, random).what, kind::again);
  auto const never_sent = failed(errc::deadline_exceeded);
  EXPECT_EQ(plan.after(never_sent, repeat::idempotent, start + 200ms, random).what, kind::again);
  EXPECT_EQ(plan.after(sent, repeat::idempotent, start + 300ms, random).what, kind::none_left);
  auto const sum = plan.sum_up(never_sent, start + 300ms);
  EXPECT_EQ(sum.effect, effect::unknown);
  EXPECT_EQ(sum.attempts, 2);
  EXPECT_EQ(sum.elapsed, 300ms);
}

TEST(retry_plan, E_03_attempts_and_pauses_must_fit_into_the_total) {
  auto const pause = backoff_options{.base = 100ms, .cap = 1s};
  retry_options o{.retries = 2, .total = 10s, .pause = pause, .attempt_timeout = 10s};
  EXPECT_THROW(o.validate(), option_error) << "3 x 10 s in 10 s";
  o.total = 30s;
  EXPECT_THROW(o.validate(), option_error) << "the pauses of 100 and 200 ms count";
  o.total = 30'300ms;
  EXPECT_NO_THROW(o.validate());
  o = {.retries = 2, .total = 30s, .pause = {.base = 1s, .cap = 30s}, .attempt_timeout = 8s};
  EXPECT_NO_THROW(o.validate()) << "3 x 8 s and 1 s + 2 s";
  o.retries = 0;
  o.attempt_timeout = 31s;
  EXPECT_THROW(o.validate(), option_error);
  try {
    retry_options{.retries = 1, .total = 1s, .attempt_timeout = 600ms}.validate();
    FAIL() << "accepted";
  } catch (option_error const& e) {
    EXPECT_EQ(e.field(), "total");
  }
}

TEST(retry_plan, E_03_an_attempt_ends_by_its_own_limit_or_by_that_of_all) {
  retry_plan plan({.retries = 1, .total = 1s, .attempt_timeout = 300ms}, start, {});
  EXPECT_EQ(plan.attempt_limit(start).at(), start + 300ms);
  EXPECT_EQ(plan.attempt_limit(start + 800ms).at(), start + 1s);
  EXPECT_EQ(retry_plan(two(), start, {}).attempt_limit(start + 10ms).at(), start + 1s);
}

TEST(retry_plan, E_05_a_service_that_asks_for_fewer_requests_is_given_a_pause) {
  random_source random(1);
  auto throttled = failed(errc::remote_throttled);
  EXPECT_EQ(throttled.group(), failure_class::saturated) << "no breaker opens";
  EXPECT_EQ(decide(throttled), kind::again) << "by our own pause";
  throttled.retry_after = 700ms;
  retry_plan plan(two(), start, {});
  auto const next = plan.after(throttled, repeat::not_executed, start, random);
  EXPECT_EQ(next.what, kind::again);
  EXPECT_EQ(next.at, start + 700ms);
  throttled.retry_after = 1s;
  EXPECT_EQ(plan.after(throttled, repeat::not_executed, start + 1ms, random).what, kind::no_time)
      << "never earlier than asked for";
}

TEST(retry_plan, C46_our_own_refusal_in_the_end_still_tells_the_cause) {
  random_source random(1);
  retry_plan plan(two(), start, {});
  EXPECT_EQ(plan.after(failed(errc::connection_refused), repeat::not_executed, start, random).what,
            kind::again);
  auto mine = failed(errc::bulkhead_full);
  mine.rejected = true;
  EXPECT_EQ(plan.after(mine, repeat::not_executed, start, random).what, kind::not_repeatable);
  auto const sum = plan.sum_up(mine, start);
  EXPECT_EQ(sum.code, errc::bulkhead_full);
  EXPECT_EQ(sum.cause, errc::connection_refused);

  retry_plan first(two(), start, {});
  EXPECT_EQ(first.after(mine, repeat::not_executed, start, random).what, kind::not_repeatable);
  EXPECT_EQ(first.sum_up(mine, start).cause, errc::unspecified);
}

TEST(retry_plan, options_name_the_bad_field) {
  auto const field = [](retry_options o) -> std::string {
    try {
      o.validate();
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.retries = 11}), "retries");
  EXPECT_EQ(field({.total = 0ns}), "total");
  EXPECT_EQ(field({.total = 1s, .floor = 2s}), "floor");
  EXPECT_EQ(field({.pause = {.base = 0ns}}), "base");
  EXPECT_EQ(field({}), "accepted");
}

}  // namespace
