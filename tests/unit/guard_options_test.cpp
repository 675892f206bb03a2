// SPDX-License-Identifier: BSL-1.0
//
// Every option of every guard: a value outside its range is refused by the constructor with the field's name
// and the value in the message, and those at its ends are taken.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/guard/adaptive_throttle.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead.hpp>
#include <redoubt/guard/hedge.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/retry_budget.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/time_limit.hpp>
#include <redoubt/guard/token_bucket.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

struct refused {
  std::function<void()> make;
  std::string field;
  std::string value;
};

template <class Guard, class Options, class Change>
refused bad(std::string field, std::string value, Options o, Change change) {
  change(o);
  return {[o] { Guard guard(o); }, std::move(field), std::move(value)};
}

template <class Change>
refused bad_breaker(std::string field, std::string value, Change change) {
  breaker::options o;
  o.settings.ratio = breaker_ratio{};
  o.settings.ramp = breaker_ramp{};
  return bad<breaker>(std::move(field), std::move(value), o,
                      [&](breaker::options& x) { change(x.settings); });
}
template <class Change>
refused bad_bulkhead(std::string field, std::string value, Change change) {
  bulkhead::options o;
  o.adaptive = adaptive_limit_options{};
  return bad<bulkhead>(std::move(field), std::move(value), o, change);
}
template <class Change>
refused bad_retry(std::string field, std::string value, Change change) {
  return bad<retry>(std::move(field), std::move(value), retry_options{}, change);
}
template <class Change>
refused bad_throttle(std::string field, std::string value, Change change) {
  return bad<adaptive_throttle>(std::move(field), std::move(value), adaptive_throttle::options{},
                                [&](adaptive_throttle::options& o) { change(o.ratio); });
}
template <class Change>
refused bad_quota(std::string field, std::string value, Change change) {
  return bad<token_bucket>(std::move(field), std::move(value),
                           token_bucket::options{.rate = {.limit = 10, .per = 1s}}, change);
}
template <class Change>
refused bad_hedge(std::string field, std::string value, Change change) {
  return bad<hedge>(std::move(field), std::move(value), hedge::options{.delay = 1s}, change);
}
template <class Change>
refused bad_flight(std::string field, std::string value, Change change) {
  return bad<single_flight<int, int>>(std::move(field), std::move(value), single_flight_options{}, change);
}
template <class Change>
refused bad_budget(std::string field, std::string value, Change change) {
  return bad<retry_budget>(std::move(field), std::move(value), retry_budget::options{}, change);
}
template <class Change>
refused bad_limit(std::string field, std::string value, Change change) {
  return bad<time_limit>(std::move(field), std::move(value), time_limit::options{}, change);
}

auto const nan = std::numeric_limits<double>::quiet_NaN();
auto const infinite = std::numeric_limits<double>::infinity();

std::vector<refused> all() {
  return {
      bad_breaker("consecutive", "0", [](auto& s) { s.consecutive = 0; }),
      bad_breaker("consecutive", "65536", [](auto& s) { s.consecutive = 65536; }),
      bad_breaker("consecutive", "empty", [](auto& s) { s.consecutive.reset(), s.ratio.reset(); }),
      bad_breaker("ratio.failures", "0", [](auto& s) { s.ratio->failures = 0; }),
      bad_breaker("ratio.failures", "nan", [](auto& s) { s.ratio->failures = nan; }),
      bad_breaker("ratio.slow", "1.5", [](auto& s) { s.ratio->slow = 1.5; }),
      bad_breaker("ratio.slow_after", "0 ", [](auto& s) { s.ratio->slow_after = 0s; }),
      bad_breaker("ratio.minimum_calls", "0", [](auto& s) { s.ratio->minimum_calls = 0; }),
      bad_breaker("ratio.window", "9 ms", [](auto& s) { s.ratio->window = 9ms; }),
      bad_breaker("ratio.window", "", [](auto& s) { s.ratio->window = duration::max(); }),
      bad_breaker("open.floor", "0 ", [](auto& s) { s.open.floor = 0s; }),
      bad_breaker("open.floor", "3000 ms", [](auto& s) { s.open.floor = 3s; }),
      bad_breaker("open.base", "-1000 ms", [](auto& s) { s.open.base = -1s; }),
      bad_breaker("open.base", "31000 ms", [](auto& s) { s.open.base = 31s; }),
      bad_breaker("open.cap", "", [](auto& s) { s.open.cap = 25h; }),
      bad_breaker("trial_limit", "0 ", [](auto& s) { s.trial_limit = 0s; }),
      bad_breaker("trial_limit", "", [](auto& s) { s.trial_limit = duration::max(); }),
      bad_breaker("ramp.start", "0", [](auto& s) { s.ramp->start = 0; }),
      bad_breaker("ramp.length", "0 ", [](auto& s) { s.ramp->length = 0s; }),
      bad_bulkhead("slots", "0", [](auto& o) { o.slots = 0; }),
      bad_bulkhead("slots", "65537", [](auto& o) { o.slots = 65537; }),
      bad_bulkhead("waiters", "65537", [](auto& o) { o.waiters = 65537; }),
      bad_bulkhead("max_wait", "0 ", [](auto& o) { o.max_wait = 0s; }),
      bad_bulkhead("max_wait", "", [](auto& o) { o.max_wait = duration::min(); }),
      bad_bulkhead("shares.normal", "0", [](auto& o) { o.shares.normal = 0; }),
      bad_bulkhead("shares.fallback", "0", [](auto& o) { o.shares.fallback = 0; }),
      bad_bulkhead("shares.low_priority", "0", [](auto& o) { o.shares.low_priority = 0; }),
      bad_bulkhead("shares.normal_priority", "nan", [](auto& o) { o.shares.normal_priority = nan; }),
      bad_bulkhead("floor", "0", [](auto& o) { o.adaptive->floor = 0; }),
      bad_bulkhead("initial", "1", [](auto& o) { o.adaptive->initial = 1; }),
      bad_bulkhead("tolerance", "0.5", [](auto& o) { o.adaptive->tolerance = 0.5; }),
      bad_bulkhead("memory", "9", [](auto& o) { o.adaptive->memory = 9; }),
      bad_bulkhead("interval", "0 ", [](auto& o) { o.adaptive->interval = 0s; }),
      bad_retry("retries", "11", [](auto& o) { o.retries = 11; }),
      bad_retry("total", "0 ", [](auto& o) { o.total = 0s; }),
      bad_retry("total", "", [](auto& o) { o.total = duration::max(); }),
      bad_retry("floor", "-1 ms", [](auto& o) { o.floor = -1ms; }),
      bad_retry("base", "0 ", [](auto& o) { o.pause.base = 0s; }),
      bad_retry("cap", "", [](auto& o) { o.pause.cap = duration::max(); }),
      bad_retry("attempt_timeout", "0 ", [](auto& o) { o.attempt_timeout = 0s; }),
      bad_retry("total", "1000 ms", [](auto& o) { o.retries = 2, o.attempt_timeout = 400ms; }),
      bad_budget("ratio", "1.1", [](auto& o) { o.ratio = 1.1; }),
      bad_budget("per_second", "inf", [](auto& o) { o.per_second = infinite; }),
      bad_budget("capacity", "1", [](auto& o) { o.capacity = 1; }),
      bad_throttle("multiplier", "0.9", [](auto& o) { o.multiplier = 0.9; }),
      bad_throttle("window", "999 ms", [](auto& o) { o.window = 999ms; }),
      bad_throttle("minimum", "0", [](auto& o) { o.minimum = 0; }),
      bad_throttle("most", "1", [](auto& o) { o.most = 1; }),
      bad_quota("limit", "0", [](auto& o) { o.rate.limit = 0u; }),
      bad_quota("per", "0 ", [](auto& o) { o.rate.per = 0s; }),
      bad_quota("burst", "11", [](auto& o) { o.rate.burst = 11; }),
      bad_quota("max_wait", "-1 ms", [](auto& o) { o.max_wait = -1ms; }),
      bad_quota("max_hold_off", "0 ", [](auto& o) { o.max_hold_off = 0s; }),
      bad_hedge("delay", "0 ", [](auto& o) { o.delay = 0s; }),
      bad_hedge("ratio", "-0.1", [](auto& o) { o.ratio = -0.1; }),
      bad_hedge("burst", "1", [](auto& o) { o.burst = 1; }),
      bad_flight("keys", "0", [](auto& o) { o.keys = 0; }),
      bad_flight("keys", "1048577", [](auto& o) { o.keys = 1'048'577; }),
      bad_flight("followers", "0", [](auto& o) { o.followers = 0; }),
      bad_flight("limit", "0 ", [](auto& o) { o.limit = 0s; }),
      bad_limit("limit", "0 ", [](auto& o) { o.limit = 0s; }),
      bad_limit("limit", "-1 ms", [](auto& o) { o.limit = -1ms; }),
  };
}

TEST(guard_options, each_bad_value_is_named_with_its_field) {
  for (auto const& each : all()) {
    SCOPED_TRACE(each.field + " " + each.value);
    try {
      each.make();
      ADD_FAILURE() << "accepted";
    } catch (option_error const& e) {
      EXPECT_EQ(e.field(), each.field) << e.what();
      EXPECT_NE(std::string(e.what()).find(each.field + " is"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(each.value), std::string::npos) << e.what();
    }
  }
}

}  // namespace
