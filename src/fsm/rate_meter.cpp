// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/rate_meter.hpp>

#include <algorithm>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void rate_options::validate() const {
  detail::require_option(limit.get() >= 1 && limit.get() <= 1'000'000'000, "rate", "limit",
                         std::uint64_t{limit}, "must be 1 to 1000000000");
  detail::require_option(per.get() >= 1ms && per.get() <= 24h, "rate", "per", per.get(),
                         "must be 1 ms to 24 h");
  detail::require_option(burst >= 1 && burst <= limit.get(), "rate", "burst", std::uint64_t{burst},
                         "must be 1 to `limit`");
}

namespace {

// A burst, and after it one each interval: burst + ceil(per / interval) - 1 <= limit in any stretch of `per`.
duration steady_interval(rate_options const& o) {
  o.validate();
  auto const steady = static_cast<duration::rep>(o.limit.get() - o.burst + 1);
  return duration((o.per.get().count() + steady - 1) / steady);
}

}  // namespace

rate_meter::rate_meter(rate_options const& options)
    : interval_(steady_interval(options)),
      slack_(interval_ * (options.burst - 1)) {}

rate_meter::answer rate_meter::take(time_point state, time_point now, time_point latest) const noexcept {
  auto const from = std::max(state, now);
  auto const at = std::max(now, saturating_add(from, -slack_));
  if (at > latest) return {false, at, state};
  return {true, at, saturating_add(from, interval_)};
}

time_point rate_meter::held_off(time_point state, time_point until) const noexcept {
  return std::max(state, saturating_add(until, slack_));
}

}  // namespace redoubt
