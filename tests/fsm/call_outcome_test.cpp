// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/call_outcome.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/fsm/breaker_options.hpp>
#include <redoubt/fsm/http_answer.hpp>
#include <redoubt/fsm/retry_plan.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

// When a failure is repeated: at once by its effect, only when declared idempotent, or never.
enum class repeated { never, if_idempotent, always };

repeated when_repeated(failure const& f) {
  auto const decide = [&f](repeat allowed) {
    random_source random(1);
    retry_plan plan({.retries = 1, .total = 1h}, time_point(1h), {});
    return plan.after(f, allowed, time_point(1h), random).what == retry_decision::kind::again;
  };
  if (decide(repeat::not_executed)) return repeated::always;
  return decide(repeat::idempotent) ? repeated::if_idempotent : repeated::never;
}

struct row {
  call_outcome what;
  errc code;
  effect done;
  failure_class group;
  repeated when;
  bool spent;
  breaker_outcome counted;
};

// The table of docs/RETRIES.md.
std::vector<row> const table{
    {call_outcome::timeout, errc::deadline_exceeded, effect::unknown, failure_class::unavailable,
     repeated::if_idempotent, true, breaker_outcome::failure},
    {call_outcome::server_failure, errc::remote_failed, effect::unknown, failure_class::unavailable,
     repeated::if_idempotent, false, breaker_outcome::failure},
    {call_outcome::throttled, errc::remote_throttled, effect::none, failure_class::saturated,
     repeated::always, false, breaker_outcome::neutral},
    {call_outcome::connection_refused, errc::connection_refused, effect::none, failure_class::unavailable,
     repeated::always, true, breaker_outcome::failure},
    {call_outcome::name_not_found, errc::resolve_failed, effect::none, failure_class::unavailable,
     repeated::always, true, breaker_outcome::failure},
    {call_outcome::partial_response, errc::connection_lost, effect::unknown, failure_class::unavailable,
     repeated::if_idempotent, true, breaker_outcome::failure},
    {call_outcome::malformed_response, errc::protocol_error, effect::unknown, failure_class::unavailable,
     repeated::never, true, breaker_outcome::failure},
    {call_outcome::delayed_response, errc::deadline_exceeded, effect::unknown, failure_class::unavailable,
     repeated::if_idempotent, true, breaker_outcome::failure},
    {call_outcome::rejected, errc::remote_rejected, effect::none, failure_class::caller_error,
     repeated::never, false, breaker_outcome::success},
};

TEST(call_outcome, E_01_every_class_of_failure_has_its_behaviour) {
  for (auto const& each : table) {
    auto const f = failure_of(each.what);
    ASSERT_TRUE(f) << each.what;
    EXPECT_EQ(f->code, each.code) << each.what;
    EXPECT_EQ(f->effect, each.done) << each.what;
    EXPECT_EQ(f->group(), each.group) << each.what;
    EXPECT_EQ(when_repeated(*f), each.when) << each.what;
    EXPECT_EQ(spends_connection(each.what), each.spent) << each.what;
    for (auto const watched : {breaker_capability::reads, breaker_capability::writes})
      EXPECT_EQ(breaker_outcome_of(*f, watched), each.counted) << each.what;
    EXPECT_EQ(f->effect == effect::unknown,
              f->attempts == 1 && f->code != errc::remote_throttled && f->code != errc::remote_rejected)
        << each.what;
  }
}

TEST(call_outcome, E_01_a_duplicate_success_is_a_success) {
  EXPECT_FALSE(failure_of(call_outcome::success));
  EXPECT_FALSE(failure_of(call_outcome::duplicate_success));
  EXPECT_FALSE(spends_connection(call_outcome::duplicate_success));
  EXPECT_EQ(outcome_of({.status = 409, .duplicate = true}), call_outcome::duplicate_success);
  EXPECT_EQ(outcome_of({.status = 200, .duplicate = true}), call_outcome::duplicate_success);
  EXPECT_EQ(outcome_of({.status = 409}), call_outcome::rejected);
  EXPECT_EQ(outcome_of({.status = 503, .duplicate = true}), call_outcome::server_failure);
}

TEST(call_outcome, E_04_a_timeout_before_anything_was_sent_may_always_be_repeated) {
  auto const f = failure_of(call_outcome::timeout, effect::none);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->attempts, 0);
  EXPECT_EQ(when_repeated(*f), repeated::always);
}

TEST(call_outcome, E_04_only_the_transient_statuses_are_repeated) {
  for (unsigned status = 0; status <= 999; ++status) {
    auto const f = failure_of(http_answer{.status = status}, {});
    bool const transient = status == 500 || status == 502 || status == 503 || status == 504;
    if (status >= 100 && status < 400) {
      EXPECT_FALSE(f) << status;
      continue;
    }
    ASSERT_TRUE(f) << status;
    auto const when = status == 429 ? repeated::always
                      : transient   ? repeated::if_idempotent
                                    : repeated::never;
    EXPECT_EQ(when_repeated(*f), when) << status;
    EXPECT_EQ(f->detail->note, "HTTP " + std::to_string(status));
    EXPECT_EQ(f->retry_after, 0ns);
  }
}

std::chrono::sys_seconds at(int y, unsigned m, unsigned d, std::chrono::seconds s) {
  using namespace std::chrono;
  return sys_days(year_month_day(year(y), month(m), day(d))) + s;
}

auto const noon = at(2026, 3, 1, 12h);

TEST(http_answer, E_05_retry_after_in_seconds) {
  EXPECT_EQ(parse_retry_after("0", noon), 0s);
  EXPECT_EQ(parse_retry_after("120", noon), 120s);
  EXPECT_EQ(parse_retry_after("  7\t", noon), 7s);
  EXPECT_EQ(parse_retry_after("99999999999999999999999", noon), 24h * 365) << "no overflow";
  EXPECT_EQ(parse_retry_after("9223372036854775807", noon), 24h * 365);
}

TEST(http_answer, T_5_retry_after_as_a_date_in_all_three_forms) {
  EXPECT_EQ(parse_retry_after("Sun, 01 Mar 2026 12:00:30 GMT", noon), 30s);
  EXPECT_EQ(parse_retry_after("Sunday, 01-Mar-26 12:01:00 GMT", noon), 60s);
  EXPECT_EQ(parse_retry_after("Sun Mar  1 13:00:00 2026", noon), 1h);
  EXPECT_EQ(parse_retry_after("Sun, 01 Mar 2026 11:00:00 GMT", noon), 0s) << "it has passed";
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", noon), 24h * 365);
}

TEST(http_answer, a_date_of_two_digits_is_at_most_fifty_years_ahead) {
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", noon), at(1994, 11, 6, 8h + 49min + 37s));
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-76 00:00:00 GMT", noon), at(2076, 11, 6, 0s));
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-77 00:00:00 GMT", noon), at(1977, 11, 6, 0s));
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-05 00:00:00 GMT", noon), at(2005, 11, 6, 0s));
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:60 GMT", noon), at(2024, 3, 1, 0s)) << "a leap second";
}

TEST(http_answer, what_is_neither_is_left_out) {
  for (std::string_view text : {"",
                                " ",
                                "Sun, 01 Mar 2026 12:00 GMT",
                                "Sun, 01 Mar",
                                "Sunday, 01-Mar-26",
                                "Sun Mar  1 2026",
                                ", ",
                                "-1",
                                "+1",
                                "1.5",
                                "1e3",
                                "12s",
                                "soon",
                                "0x10",
                                "Sun, 31 Feb 2026 12:00:00 GMT",
                                "Sun, 01 Mar 2026 25:00:00 GMT",
                                "Sun, 01 Mar 2026 12:00:00",
                                "Sun, 01 Mar 2026 12:00:00 GMT and so on",
                                "Sun, 01 Abc 2026 12:00:00 GMT",
                                "2026-03-01T12:00:00Z",
                                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    EXPECT_EQ(parse_retry_after(text, noon), std::nullopt) << text;
  }
}

TEST(http_answer, E_05_the_pause_is_measured_on_the_clock_of_the_service) {
  http_answer answer{
      .status = 503, .retry_after = "Sun, 01 Mar 2026 12:00:30 GMT", .date = "Sun, 01 Mar 2026 12:00:10 GMT"};
  auto const hours_wrong = noon + 5h;
  EXPECT_EQ(failure_of(answer, hours_wrong)->retry_after, 20s);
  answer.date = {};
  EXPECT_EQ(failure_of(answer, noon)->retry_after, 30s);
  EXPECT_EQ(failure_of(answer, hours_wrong)->retry_after, 0s);
  answer = {.status = 429, .retry_after = "3"};
  EXPECT_EQ(failure_of(answer, hours_wrong)->retry_after, 3s);
  answer = {.status = 404, .retry_after = "3"};
  EXPECT_EQ(failure_of(answer, noon)->retry_after, 0s) << "a wrong request stays wrong";
}

}  // namespace
