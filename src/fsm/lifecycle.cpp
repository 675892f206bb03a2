// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/lifecycle.hpp>

#include <algorithm>
#include <ostream>

namespace redoubt {

using kind = link_action::kind;

std::string_view to_string(link_state state) noexcept {
  switch (state) {
    case link_state::idle: return "idle";
    case link_state::resolving: return "resolving";
    case link_state::connecting: return "connecting";
    case link_state::securing: return "securing";
    case link_state::handshaking: return "handshaking";
    case link_state::ready: return "ready";
    case link_state::backing_off: return "backing_off";
    case link_state::closed: return "closed";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, link_state state) { return out << to_string(state); }

lifecycle::lifecycle(lifecycle_options options, std::uint64_t seed)
    : options_(options),
      random_(seed),
      reconnect_(options.reconnect),
      retire_(options.reconnect) {}

link_actions lifecycle::attempt(time_point now) {
  ++epoch_;
  ++counts_.attempts;
  state_ = link_state::resolving;
  limit_ = saturating_add(now, options_.connect_timeout);
  link_actions out;
  out.push({kind::resolve, epoch_, {}});
  return out;
}

link_actions lifecycle::greet(time_point now) {
  state_ = link_state::handshaking;
  limit_ = saturating_add(now, options_.stall_limit);
  link_actions out;
  out.push({kind::greet, epoch_, {}});
  return out;
}

link_actions lifecycle::back_off(failure why, duration pause, time_point now) {
  cause_ = std::move(why);
  ++epoch_;
  state_ = link_state::backing_off;
  retry_at_ = saturating_add(now, pause);
  link_actions out;
  out.push({kind::drop, epoch_, {}});
  out.push({kind::fail_waiting, epoch_, {}});
  return out;
}

link_actions lifecycle::refuse(failure why, time_point now) {
  auto const jitter = duration(static_cast<duration::rep>(
      random_.below(static_cast<std::uint64_t>(options_.refused_pause.count()) + 1)));
  ++counts_.failed;
  return back_off(std::move(why), options_.refused_pause + jitter, now);
}

link_actions lifecycle::again(bool wanted, time_point now) {
  ++epoch_;
  state_ = link_state::idle;
  link_actions out;
  out.push({kind::drop, epoch_, {}});
  if (wanted) {
    for (auto const& action : attempt(now)) out.push(action);
  }
  return out;
}

link_actions lifecycle::demand(time_point now) {
  bool const may_start =
      state_ == link_state::idle || (state_ == link_state::backing_off && now >= retry_at_);
  return may_start ? attempt(now) : link_actions{};
}

link_actions lifecycle::on_resolved(std::uint64_t epoch, time_point) {
  if (epoch != epoch_ || state_ != link_state::resolving) return {};
  state_ = link_state::connecting;
  link_actions out;
  out.push({kind::connect, epoch_, limit_});
  return out;
}

link_actions lifecycle::on_attempt_failed(std::uint64_t epoch, failure why, time_point now) {
  if (epoch != epoch_) return {};
  if (state_ != link_state::resolving && state_ != link_state::connecting && state_ != link_state::securing)
    return {};
  why.phase = waiting_phase();
  // A certificate does not become right from one moment to the next.
  if (why.code == errc::tls_untrusted) return refuse(std::move(why), now);
  ++counts_.failed;
  return back_off(std::move(why), reconnect_.next(random_), now);
}

link_actions lifecycle::on_connected(std::uint64_t epoch, time_point now) {
  if (epoch != epoch_ || state_ != link_state::connecting) return {};
  if (!options_.secure) return greet(now);
  state_ = link_state::securing;
  limit_ = saturating_add(now, options_.stall_limit);
  link_actions out;
  out.push({kind::secure, epoch_, {}});
  return out;
}

link_actions lifecycle::on_secured(std::uint64_t epoch, time_point now) {
  if (epoch != epoch_ || state_ != link_state::securing) return {};
  return greet(now);
}

link_actions lifecycle::on_greeted(std::uint64_t epoch, time_point) {
  if (epoch != epoch_ || state_ != link_state::handshaking) return {};
  state_ = link_state::ready;
  ++counts_.readied;
  // A server that greets and dies, again and again, is met with ever longer pauses: only an answer ends that.
  if (unproven_losses_ == 0) reconnect_.reset();
  link_actions out;
  out.push({kind::open, epoch_, {}});
  return out;
}

link_actions lifecycle::on_refused(std::uint64_t epoch, failure why, time_point now) {
  if (epoch != epoch_ || state_ != link_state::handshaking) return {};
  why.phase = why.code == errc::tls_untrusted ? phase::tls : phase::handshake;
  return refuse(std::move(why), now);
}

link_actions lifecycle::on_lost(std::uint64_t epoch, failure why, bool wanted, time_point now) {
  if (epoch != epoch_) return {};
  if (state_ == link_state::handshaking) {
    why.phase = phase::handshake;
    ++counts_.failed;
    return back_off(std::move(why), reconnect_.next(random_), now);
  }
  if (state_ != link_state::ready) return {};
  ++counts_.lost;
  cause_ = std::move(why);
  // One loss is met by an attempt at once. A server that keeps taking connections and ending them before any
  // answer is not: the second such loss in a row counts as a failed attempt.
  if (++unproven_losses_ > 1 && cause_.code != errc::connection_stalled) {
    return back_off(cause_, reconnect_.next(random_), now);
  }
  return again(wanted, now);
}

bool lifecycle::should_retire(time_point now) {
  if (state_ != link_state::ready || now < retire_allowed_) return false;
  bool const long_ago =
      retire_allowed_ != time_point::min() && now - retire_allowed_ > 10 * options_.reconnect.cap;
  if (long_ago) retire_.reset();
  auto const step = backoff::ceiling(options_.reconnect, retire_.attempts());
  (void)retire_.next(random_);
  retire_allowed_ = saturating_add(now, step);
  return true;
}

link_actions lifecycle::retire(bool wanted, time_point now) {
  if (state_ != link_state::ready) return {};
  ++counts_.lost;
  ++counts_.retired;
  return again(wanted, now);
}

link_actions lifecycle::on_time(bool wanted, time_point now) {
  switch (state_) {
    case link_state::resolving:
    case link_state::connecting: {
      if (now < limit_) return {};
      failure why;
      why.code = state_ == link_state::resolving ? errc::resolve_failed : errc::connect_timeout;
      why.effect = effect::none;
      return on_attempt_failed(epoch_, std::move(why), now);
    }
    case link_state::securing:
    case link_state::handshaking:
      if (now < limit_) return {};
      ++counts_.failed;
      cause_ = failure{.code = errc::connection_stalled, .effect = effect::none, .phase = waiting_phase()};
      return again(wanted, now);
    case link_state::backing_off:
      if (now < retry_at_) return {};
      state_ = link_state::idle;
      return wanted ? attempt(now) : link_actions{};
    case link_state::idle:
    case link_state::ready:
    case link_state::closed: return {};
  }
  return {};
}

std::optional<time_point> lifecycle::next_wakeup() const noexcept {
  switch (state_) {
    case link_state::resolving:
    case link_state::connecting:
    case link_state::securing:
    case link_state::handshaking: return limit_;
    case link_state::idle:
    case link_state::ready:
    case link_state::backing_off:  // the next call looks at the time itself; no timer is needed
    case link_state::closed: return std::nullopt;
  }
  return std::nullopt;
}

link_actions lifecycle::close() {
  link_actions out;
  if (state_ == link_state::closed) return out;
  ++epoch_;
  state_ = link_state::closed;
  cause_ = failure{.code = errc::closed, .effect = effect::none, .rejected = true};
  out.push({kind::drop, epoch_, {}});
  out.push({kind::fail_waiting, epoch_, {}});
  return out;
}

phase lifecycle::waiting_phase() const noexcept {
  switch (state_) {
    case link_state::resolving: return phase::resolve;
    case link_state::connecting: return phase::connect;
    case link_state::securing: return phase::tls;
    case link_state::handshaking: return phase::handshake;
    case link_state::idle:
    case link_state::ready:
    case link_state::backing_off:
    case link_state::closed: return phase::queue;
  }
  return phase::queue;
}

std::optional<failure> lifecycle::rejection(time_point now) const {
  if (state_ == link_state::closed) return cause_;
  if (state_ != link_state::backing_off || now >= retry_at_) return std::nullopt;
  auto out = cause_;
  out.effect = effect::none;
  out.rejected = true;
  out.retry_after = retry_at_ - now;
  return out;
}

lifecycle_snapshot lifecycle::snapshot() const noexcept {
  auto out = counts_;
  out.state = state_;
  return out;
}

bool lifecycle::check() const noexcept {
  if (counts_.readied > counts_.attempts || counts_.retired > counts_.lost) return false;
  if (counts_.lost > counts_.readied || (state_ == link_state::ready && counts_.lost == counts_.readied))
    return false;
  return state_ != link_state::securing || options_.secure;
}

}  // namespace redoubt
