// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/retry_plan.hpp>

#include <algorithm>
#include <utility>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void retry_options::validate() const {
  detail::require_option(retries <= 10, "retry", "retries", std::uint64_t{retries}, "must be 0 to 10");
  detail::require_option(total >= 1ms && total <= 1h, "retry", "total", total, "must be 1 ms to 1 h");
  detail::require_option(floor >= 0ns && floor <= total, "retry", "floor", floor, "must be 0 to `total`");
  pause.validate();
}

retry_plan::retry_plan(retry_options const& options, time_point start, deadline by)
    : options_(options),
      pause_(options.pause),
      start_(start),
      limit_(earlier(by, deadline(saturating_add(start, options.total)))) {}

namespace {

/// True when another attempt can end differently.
bool may_change(failure const& f) {
  switch (f.code) {
    // The same request would be answered in the same way, or nothing is there to answer it any more.
    case errc::closed:
    case errc::protocol_error:
    case errc::reply_too_large:
    case errc::retries_exhausted: return false;
    default: break;
  }
  switch (f.group()) {
    case failure_class::unavailable: return true;
    // Whoever refused for our own sake says when it is worth asking again, or it is not.
    case failure_class::saturated: return f.retry_after > 0ns;
    // A demoted primary: the client looks the name up anew. The others last longer than a pause.
    case failure_class::write_refused: return f.server == server_errc::readonly;
    case failure_class::misconfigured:
    case failure_class::caller_error:
    case failure_class::cancelled: break;
  }
  return false;
}

}  // namespace

retry_decision retry_plan::after(failure const& f, repeat allowed, time_point now, random_source& random) {
  using kind = retry_decision::kind;
  sends_ += f.attempts;
  maybe_executed_ = maybe_executed_ || f.effect == effect::unknown;
  if (!may_change(f)) return {kind::not_repeatable, {}};
  if (f.effect == effect::unknown && allowed == repeat::not_executed) return {kind::not_repeatable, {}};
  if (f.server == server_errc::readonly && std::exchange(seen_readonly_, true))
    return {kind::not_repeatable, {}};
  if (retries_ >= options_.retries) return {kind::none_left, {}};
  auto const at = saturating_add(now, std::max(pause_.next(random), f.retry_after));
  if (limit_.left(at) < options_.floor || limit_.passed(at)) return {kind::no_time, {}};
  ++retries_;
  return {kind::again, at};
}

failure retry_plan::sum_up(failure last, time_point now) const {
  last.attempts = static_cast<std::uint8_t>(std::min<std::uint32_t>(sends_, 255));
  if (maybe_executed_) last.effect = effect::unknown;
  last.elapsed = now - start_;
  return last;
}

}  // namespace redoubt
