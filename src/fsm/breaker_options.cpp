// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_options.hpp>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

breaker_outcome breaker_outcome_of(failure const& f, breaker_capability watched) noexcept {
  switch (f.group()) {
    case failure_class::unavailable: return breaker_outcome::failure;
    case failure_class::write_refused:
      return watched == breaker_capability::writes ? breaker_outcome::failure : breaker_outcome::success;
    case failure_class::saturated:
    case failure_class::cancelled: return breaker_outcome::neutral;
    case failure_class::misconfigured:
    case failure_class::caller_error: break;
  }
  if (f.code == errc::unexpected_reply || f.code == errc::remote_rejected) return breaker_outcome::success;
  if (f.code != errc::server_error) return breaker_outcome::neutral;  // we refused it, or our own code failed
  switch (f.server) {
    case server_errc::noauth:
    case server_errc::wrongpass:
    case server_errc::noproto:
      return breaker_outcome::neutral;         // it would be so with any state of the server
    default: return breaker_outcome::success;  // it lives, and says what is wrong with this call
  }
}

void breaker_settings::validate() const {
  auto const require = [](bool ok, auto const* field, auto value, auto const* rule) {
    detail::require_option(ok, "breaker", field, value, rule);
  };
  require(consecutive || ratio, "consecutive", std::string_view("empty"), "must be set when `ratio` is not");
  if (consecutive) {
    require(*consecutive >= 1 && *consecutive <= 65535, "consecutive", std::uint64_t{*consecutive},
            "must be 1 to 65535");
  }
  if (ratio) {
    require(ratio->failures > 0 && ratio->failures <= 1, "ratio.failures", ratio->failures,
            "must be above 0, at most 1");
    if (ratio->slow) {
      require(*ratio->slow > 0 && *ratio->slow <= 1, "ratio.slow", *ratio->slow,
              "must be above 0, at most 1");
    }
    require(ratio->slow_after >= 1us && ratio->slow_after <= 1h, "ratio.slow_after", ratio->slow_after,
            "must be 1 us to 1 h");
    require(ratio->minimum_calls >= 1 && ratio->minimum_calls <= 1'000'000, "ratio.minimum_calls",
            std::uint64_t{ratio->minimum_calls}, "must be 1 to 1000000");
    require(ratio->window >= 10ms && ratio->window <= 1h, "ratio.window", ratio->window,
            "must be 10 ms to 1 h");
  }
  require(open.base >= 1ms && open.base <= open.cap, "open.base", open.base, "must be 1 ms to `open.cap`");
  require(open.floor >= 1ms && open.floor <= open.base, "open.floor", open.floor,
          "must be 1 ms to `open.base`");
  require(open.cap <= 24h, "open.cap", open.cap, "must be `open.base` to 24 h");
  require(trial_limit >= 1ms && trial_limit <= 10min, "trial_limit", trial_limit, "must be 1 ms to 10 min");
  if (ramp) {
    require(ramp->start > 0 && ramp->start <= 1, "ramp.start", ramp->start, "must be above 0, at most 1");
    require(ramp->length >= 1ms && ramp->length <= 1h, "ramp.length", ramp->length, "must be 1 ms to 1 h");
  }
}

}  // namespace redoubt
