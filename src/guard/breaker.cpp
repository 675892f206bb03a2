// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/breaker.hpp>

#include <fmt/format.h>

#include <redoubt/core/named_detail.hpp>
#include <redoubt/core/random_seeds.hpp>

namespace redoubt {
namespace {

event_kind kind_of(breaker_phase to) noexcept {
  switch (to) {
    case breaker_phase::closed: return event_kind::breaker_closed;
    case breaker_phase::open: return event_kind::breaker_opened;
    case breaker_phase::half_open: return event_kind::breaker_trying;
    case breaker_phase::recovering: break;
  }
  return event_kind::breaker_recovering;
}

std::string describe_settings(breaker_settings const& s) {
  std::string out;
  if (s.consecutive) out += fmt::format("{} failures in a row", *s.consecutive);
  if (s.ratio) {
    out += fmt::format("{}{:.0f} % of at least {}", s.consecutive ? " or " : "", s.ratio->failures * 100,
                       s.ratio->minimum_calls);
  }
  return out;
}

}  // namespace

breaker::breaker() : breaker(options{}) {}

breaker::breaker(options o)
    : state_(o.settings),
      name_(std::move(o.name)),
      detail_(detail::named_detail(name_)),
      events_(o.events),
      random_(random_seeds(o.seed).next()) {}

result<breaker::permit> breaker::ask(time_point now) {
  std::unique_lock lock(mutex_);
  auto const decision = state_.admit(now, random_);
  report(lock);
  if (!decision.admitted) return refusal(decision);
  return permit(this, decision.pass, now, decision.limit);
}

void breaker::record(breaker_pass pass, breaker_outcome outcome, time_point since, errc cause,
                     time_point now) {
  if (outcome == breaker_outcome::neutral && state_.neutral_at_once(pass)) return;
  std::unique_lock lock(mutex_);
  // Where slow calls do not count nobody has looked at the clock when the call began.
  auto const took = since == time_point{} ? duration::zero() : now - since;
  state_.record(pass, outcome, took, cause, now, random_);
  report(lock);
}

void breaker::give_up(breaker_pass pass) noexcept {
  if (state_.neutral_at_once(pass)) return;
  std::scoped_lock const lock(mutex_);
  state_.give_up(pass);
}

bool breaker::advise_open(time_point until, time_point now) {
  std::unique_lock lock(mutex_);
  bool const opened = state_.advise(until, now, random_);
  report(lock);
  return opened;
}

void breaker::configure(breaker_settings const& settings) {
  std::unique_lock lock(mutex_);
  state_.configure(settings);
  report(lock);
}

breaker_settings breaker::settings() const {
  std::scoped_lock const lock(mutex_);
  return state_.settings();
}

// Whoever comes first tells everything, also what others add meanwhile: so the order is that of the changes.
void breaker::report(std::unique_lock<std::mutex>& lock) {
  while (auto const t = state_.take_transition()) {
    if (events_ != nullptr) to_report_.push_back(*t);
  }
  if (reporting_) return;
  reporting_ = true;
  while (!to_report_.empty()) {
    auto const t = to_report_.pop_front();
    lock.unlock();
    failure cause;
    cause.code = t.cause;
    events_->on({kind_of(t.to), name_, t.to == breaker_phase::open ? &cause : nullptr});
    lock.lock();
  }
  reporting_ = false;
}

void breaker::permit::record(failure const& f, time_point now) {
  auto* const owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  owner->record(pass_, breaker_outcome_of(f, owner->state_.watches()), since_, f.code, now);
}

void breaker::permit::record(breaker_outcome outcome, errc cause, time_point now) {
  auto* const owner = std::exchange(owner_, nullptr);
  if (owner != nullptr) owner->record(pass_, outcome, since_, cause, now);
}

layer_description breaker_layer::describe(call_figures const& inside) const {
  return {"breaker", guard_->name(), describe_settings(guard_->settings()), inside};
}

}  // namespace redoubt
