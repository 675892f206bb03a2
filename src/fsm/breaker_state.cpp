// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_state.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

#include <redoubt/fsm/backoff.hpp>

namespace redoubt {
namespace {

template <class T>
void store(T& to, T value, std::memory_order order = std::memory_order_relaxed) noexcept {
  std::atomic_ref(to).store(value, order);
}

}  // namespace

breaker_state::breaker_state(breaker_settings const& settings) : settings_(settings) {
  settings_.validate();
  if (settings_.ratio) add_succeeded(window_.reset(settings_.ratio->window));
  publish();
}

bool breaker_state::neutral_at_once(breaker_pass pass) noexcept {
  if (pass.trial != 0) return false;
  add(counts_.neutral);
  if (pass.counts && pass.generation != generation_of(load(word_))) add(counts_.stale);
  return true;
}

breaker_snapshot breaker_state::snapshot() const noexcept {
  breaker_snapshot out;
  auto const read = [&](std::uint64_t breaker_snapshot::*field) { out.*field = load(counts_.*field); };
  for (auto const field :
       {&breaker_snapshot::stale, &breaker_snapshot::slow, &breaker_snapshot::failed,
        &breaker_snapshot::neutral, &breaker_snapshot::would_refuse, &breaker_snapshot::opened,
        &breaker_snapshot::advised, &breaker_snapshot::lost_trials, &breaker_snapshot::trials}) {
    read(field);
  }
  out.refused = refused_.read();
  // Calls on their way out of the window are in neither part for a moment: then the last number stays,
  // because a count never falls.
  out.succeeded = succeeded_.read(std::memory_order_acquire) + window_.held();
  std::atomic_ref shown(const_cast<std::uint64_t&>(shown_));
  auto before = shown.load(std::memory_order_relaxed);
  while (before < out.succeeded &&
         !shown.compare_exchange_weak(before, out.succeeded, std::memory_order_relaxed)) {
  }
  out.succeeded = std::max(out.succeeded, before);
  out.phase = load(phase_);
  out.mode = load(mode_);
  auto const word = load(word_);
  out.generation = generation_of(word);
  out.cause = cause_of(word);
  return out;
}

breaker_capability breaker_state::watches() const noexcept { return load(watches_); }

bool breaker_state::forced() const noexcept {
  return settings_.mode == breaker_mode::forced_open || settings_.mode == breaker_mode::forced_closed;
}

// What time alone has changed since the last step.
void breaker_state::settle(time_point now, random_source& random) {
  if (now < until_) return;
  if (phase_ == breaker_phase::half_open && trial_out_) {
    add(counts_.lost_trials);
    open(errc::limit_exceeded, now, random);
  } else if (phase_ == breaker_phase::recovering) {
    // The same generation: what began while it recovered is news about the same time.
    openings_ = 0;
    enter(breaker_phase::closed, errc::unspecified);
  }
}

void breaker_state::enter(breaker_phase to, errc cause) {
  assert(untaken_ < transitions_.size());
  transitions_[untaken_++] = {phase_, to, generation_, cause};
  store(phase_, to);
}

void breaker_state::open(errc cause, time_point now, random_source& random) {
  backoff_options const growth{settings_.open.base, settings_.open.cap};
  auto const ceiling = backoff::ceiling(growth, openings_);
  if (openings_ != ~std::uint32_t{0}) ++openings_;
  auto const spread = static_cast<std::uint64_t>((ceiling - settings_.open.floor).count());
  auto const jitter = duration(static_cast<duration::rep>(random.below(spread + 1)));
  until_ = saturating_add(now, settings_.open.floor + jitter);
  cause_ = cause;
  trial_out_ = false;
  ++generation_;
  add(counts_.opened);
  enter(breaker_phase::open, cause);
}

void breaker_state::close(time_point now) {
  trial_out_ = false;
  failures_ = 0;
  cause_ = errc::unspecified;
  if (settings_.ratio) add_succeeded(window_.reset(settings_.ratio->window));
  ++generation_;
  if (settings_.ramp) {
    until_ = saturating_add(now, settings_.ramp->length);
    credit_ = 1.0 - settings_.ramp->start;  // the first one passes
    enter(breaker_phase::recovering, errc::unspecified);
  } else {
    openings_ = 0;
    enter(breaker_phase::closed, errc::unspecified);
  }
}

void breaker_state::fresh() {
  trial_out_ = false;
  failures_ = openings_ = 0;
  cause_ = errc::unspecified;
  if (settings_.ratio) add_succeeded(window_.reset(settings_.ratio->window));
  ++generation_;
  if (phase_ != breaker_phase::closed) enter(breaker_phase::closed, errc::unspecified);
}

breaker_decision breaker_state::refuse(duration retry_after) noexcept {
  breaker_decision out;
  if (settings_.mode == breaker_mode::metrics_only) {
    add(counts_.would_refuse);
    out.admitted = true;
    out.pass.generation = generation_;
    return out;
  }
  refused_.add();
  out.retry_after = retry_after;
  out.cause = cause_;
  return out;
}

breaker_decision breaker_state::pass() const noexcept {
  breaker_decision out;
  out.admitted = true;
  out.pass = {generation_, 0, true};
  return out;
}

breaker_decision breaker_state::admit(time_point now, random_source& random) {
  breaker_decision out;
  if (forced()) {
    if (settings_.mode == breaker_mode::forced_open) return refuse(duration::zero());
    out.admitted = true;
    out.pass.generation = generation_;
    return out;
  }
  settle(now, random);
  if (phase_ == breaker_phase::open && now >= until_) {
    ++generation_;
    enter(breaker_phase::half_open, errc::unspecified);
  }
  switch (phase_) {
    case breaker_phase::closed: out = pass(); break;
    case breaker_phase::open: out = refuse(until_ - now); break;
    case breaker_phase::half_open:
      if (trial_out_) {
        out = refuse(until_ - now);
        break;
      }
      trial_out_ = true;
      if (++trial_ == 0) trial_ = 1;
      add(counts_.trials);
      out = pass();
      out.pass.trial = trial_;
      out.limit = deadline(saturating_add(now, settings_.trial_limit));
      until_ = saturating_add(out.limit.at(), breaker_settings::lease_grace);
      break;
    case breaker_phase::recovering: {
      auto const& ramp = *settings_.ramp;
      auto const left =
          static_cast<double>((until_ - now).count()) / static_cast<double>(ramp.length.count());
      credit_ += 1.0 - (1.0 - ramp.start) * std::min(left, 1.0);
      if (credit_ >= 1.0) {
        credit_ -= 1.0;
        out = pass();
      } else {
        out = refuse(std::min<duration>(until_ - now, ramp.length / 10));
      }
      break;
    }
  }
  publish();
  return out;
}

void breaker_state::record(breaker_pass pass, breaker_outcome outcome, duration took, errc cause,
                           time_point now, random_source& random) {
  if (apply(pass, outcome, took, cause, now, random)) return;
  switch (outcome) {
    case breaker_outcome::success: succeeded_.add(); break;
    case breaker_outcome::failure: add(counts_.failed); break;
    case breaker_outcome::neutral: add(counts_.neutral); break;
  }
}

// What a result changes. True when the window counts it.
bool breaker_state::apply(breaker_pass pass, breaker_outcome outcome, duration took, errc cause,
                          time_point now, random_source& random) {
  if (!pass.counts || forced()) return false;
  bool in_window = false;
  settle(now, random);
  if (pass.generation != generation_ || (pass.trial != 0 && (pass.trial != trial_ || !trial_out_))) {
    add(counts_.stale);
  } else if (phase_ == breaker_phase::half_open) {
    record_trial(pass, outcome, cause, now, random);
  } else {
    auto const& ratio = settings_.ratio;
    bool const slow = ratio && ratio->slow && outcome != breaker_outcome::neutral && took > ratio->slow_after;
    in_window = record_call(outcome, slow, cause, now, random);
  }
  publish();
  return in_window;
}

bool breaker_state::advise(time_point until, time_point now, random_source& random) {
  if (forced() || !settings_.follow_advice) return false;
  settle(now, random);
  bool const opens = phase_ == breaker_phase::closed && until > now;
  if (opens) {
    open(errc::breaker_open, now, random);
    until_ = std::min(until_, until);
    add(counts_.advised);
  }
  publish();
  return opens;
}

void breaker_state::give_up(breaker_pass pass) noexcept {
  if (neutral_at_once(pass)) return;
  add(counts_.neutral);
  if (pass.generation != generation_ || pass.trial != trial_ || !trial_out_) {
    add(counts_.stale);
    return;
  }
  trial_out_ = false;  // the next caller tries
  publish();
}

void breaker_state::record_trial(breaker_pass pass, breaker_outcome outcome, errc cause, time_point now,
                                 random_source& random) {
  assert(pass.trial != 0);
  (void)pass;
  switch (outcome) {
    case breaker_outcome::success: close(now); break;
    case breaker_outcome::failure: open(cause, now, random); break;
    case breaker_outcome::neutral: trial_out_ = false; break;  // the next caller tries
  }
}

// True when the window counts it.
bool breaker_state::record_call(breaker_outcome outcome, bool slow, errc cause, time_point now,
                                random_source& random) {
  if (outcome == breaker_outcome::neutral) return false;
  bool const failed = outcome == breaker_outcome::failure;
  if (slow) add(counts_.slow);
  failures_ = failed ? failures_ + 1 : 0;
  if (settings_.consecutive && failures_ >= *settings_.consecutive) {
    open(cause, now, random);
    return false;
  }
  if (!settings_.ratio) return false;
  if (!failed && !slow) {
    add_succeeded(window_.add_good(now));
    return true;
  }
  window_.add_bad(now, failed, slow);
  auto const& ratio = *settings_.ratio;
  auto const counts = window_.count(now);
  if (counts.calls < ratio.minimum_calls) return false;
  auto const calls = static_cast<double>(counts.calls);
  if (static_cast<double>(counts.failed) >= ratio.failures * calls) {
    open(cause, now, random);
  } else if (ratio.slow && static_cast<double>(counts.slow) >= *ratio.slow * calls) {
    open(failed ? cause : errc::limit_exceeded, now, random);
  }
  return false;
}

void breaker_state::configure(breaker_settings const& settings) {
  settings.validate();
  auto const forced_before = forced();
  auto const window_before = settings_.ratio ? settings_.ratio->window : duration::zero();
  settings_ = settings;
  if (settings_.ratio && settings_.ratio->window != window_before) {
    add_succeeded(window_.reset(settings_.ratio->window));
  }
  if (forced() || forced_before) fresh();
  // A limit that was lowered below what there is: the next failure opens.
  if (settings_.consecutive) failures_ = std::min(failures_, *settings_.consecutive - 1);
  if (!settings_.ramp && phase_ == breaker_phase::recovering) enter(breaker_phase::closed, errc::unspecified);
  publish();
}

std::optional<breaker_transition> breaker_state::take_transition() noexcept {
  if (untaken_ == 0) return std::nullopt;
  auto const out = transitions_[0];
  std::move(transitions_.begin() + 1, transitions_.end(), transitions_.begin());
  --untaken_;
  return out;
}

time_point breaker_state::next_wakeup() const noexcept {
  if (forced() || phase_ == breaker_phase::closed) return time_point::max();
  if (phase_ == breaker_phase::half_open && !trial_out_) return time_point::max();
  return until_;
}

// Tells the lock-free part where things stand.
void breaker_state::publish() noexcept {
  store(mode_, settings_.mode);
  store(watches_, settings_.watches);
  auto g = gate::ask;
  bool const awaiting = phase_ == breaker_phase::open || (phase_ == breaker_phase::half_open && trial_out_);
  if (settings_.mode == breaker_mode::forced_open) {
    g = gate::always_refuse;
  } else if (settings_.mode == breaker_mode::forced_closed) {
    g = gate::always_pass;
  } else if (phase_ == breaker_phase::closed) {
    g = gate::pass;
  } else if (awaiting && settings_.mode == breaker_mode::normal) {
    g = gate::refuse;
    store(refuse_until_, std::int64_t{until_.time_since_epoch().count()});
  }
  if (settings_.ratio) store(slow_after_, std::int64_t{settings_.ratio->slow_after.count()});
  auto word = static_cast<std::uint64_t>(g) | std::uint64_t{static_cast<std::uint8_t>(cause_)} << 8 |
              std::uint64_t{generation_} << 32;
  if (failures_ > 0) word |= troubled;
  if (settings_.ratio) word |= settings_.ratio->slow ? windowed | timed : windowed;
  store(word_, word, std::memory_order_release);
}

void breaker_state::check() const noexcept {
  assert(untaken_ <= transitions_.size());
  assert(!trial_out_ || phase_ == breaker_phase::half_open);
  assert(generation_of(word_) == generation_);
  assert(!forced() || phase_ == breaker_phase::closed);
  assert(phase_ != breaker_phase::recovering || settings_.ramp);
  assert(!settings_.consecutive || phase_ != breaker_phase::closed || failures_ < *settings_.consecutive);
  auto const g = static_cast<gate>(word_ & gate_mask);
  assert((g == gate::pass) == (phase_ == breaker_phase::closed && !forced()));
  assert(g != gate::refuse || phase_ == breaker_phase::open || trial_out_);
  assert(g != gate::refuse || refuse_until_ == until_.time_since_epoch().count());
  (void)g;
}

}  // namespace redoubt
