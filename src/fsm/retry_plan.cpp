// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/retry_plan.hpp>

#include <algorithm>
#include <utility>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

namespace {

/// For valid options: 11 attempts of 1 h and 10 pauses of 24 h at most, so nothing overflows.
duration attempts_and_pauses(retry_options const& o) noexcept {
  duration sum = o.attempt_timeout.value_or(0ns) * (o.retries + 1);
  for (unsigned n = 0; n < o.retries; ++n) sum += backoff::ceiling(o.pause, n);
  return sum;
}

}  // namespace

void retry_options::validate() const {
  detail::require_option(retries <= 10, "retry", "retries", std::uint64_t{retries}, "must be 0 to 10");
  detail::require_option(total >= 1ms && total <= 1h, "retry", "total", total, "must be 1 ms to 1 h");
  detail::require_option(floor >= 0ns && floor <= total, "retry", "floor", floor, "must be 0 to `total`");
  pause.validate();
  if (!attempt_timeout) return;
  detail::require_option(*attempt_timeout >= 1ms && *attempt_timeout <= total, "retry", "attempt_timeout",
                         *attempt_timeout, "must be 1 ms to `total`");
  detail::require_option(
      attempts_and_pauses(*this) <= total, "retry", "total", total,
      "must hold all attempts with their longest pauses (attempts x attempt_timeout + pauses)");
}

retry_plan::retry_plan(retry_options const& options, time_point start, deadline by)
    : options_(options),
      pause_(options.pause),
      start_(start),
      limit_(earlier(by, deadline(saturating_add(start, options.total)))) {}

deadline retry_plan::attempt_limit(time_point now) const noexcept {
  if (!options_.attempt_timeout) return limit_;
  return earlier(limit_, deadline(saturating_add(now, *options_.attempt_timeout)));
}

namespace {

/// True when another attempt can end differently.
bool may_change(failure const& f) {
  switch (f.code) {
    // The same request would be answered in the same way, or nothing is there to answer it any more.
    case errc::closed:
    case errc::protocol_error:
    case errc::reply_too_large:
    case errc::retries_exhausted: return false;
    // It says when it will be worth a trial, but one caller makes that trial, and all the others would pause
    // here for nothing.
    case errc::breaker_open: return false;
    // It is the other side's bound, not ours: worth a pause even when it does not say how long.
    case errc::remote_throttled: return true;
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
  if (!f.rejected) real_cause_ = f.code;
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
  // Our own refusal is not what went wrong.
  if (last.rejected && real_cause_ && last.cause == errc::unspecified) last.cause = *real_cause_;
  return last;
}

}  // namespace redoubt
