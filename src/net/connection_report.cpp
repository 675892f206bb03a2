// SPDX-License-Identifier: BSL-1.0
//
// What a connection core tells: failures with their place, events, lists, numbers.
#include <algorithm>
#include <utility>

#include <redoubt/net/connection_core.hpp>

namespace redoubt::detail {

failure connection_core::placed(failure why, std::string_view note) const {
  if (note.empty() && !why.detail) {
    why.detail = place_;
    return why;
  }
  auto text = std::make_shared<failure_detail>(why.detail ? *why.detail : failure_detail{});
  text->endpoint = place_->endpoint;
  if (!note.empty()) text->note = note;
  why.detail = std::move(text);
  return why;
}

void connection_core::tell(event_kind kind, failure const* cause) noexcept {
  if (options_.events) options_.events->on({kind, options_.login.client_name, cause});
}

void connection_core::tell_lost(failure const& why, event_kind kind) noexcept {
  // Once for each attempt and each connection, whatever comes first: the loss, or the end of the attempt.
  if (std::exchange(announced_, false) && why.code != errc::closed) tell(kind, &why);
}

void connection_core::tell_sent(pending_call const& call) noexcept {
  call_report const report{.command = call.name, .elapsed = call.staged - call.started};
  options_.events->on({.kind = event_kind::call_sent, .source = options_.login.client_name, .call = &report});
}

void connection_core::tell_finished(pending_call const& call, phase_times const& times,
                                    time_point t) noexcept {
  call_report const report{call.name, t - call.started, times};
  options_.events->on({.kind = event_kind::call_finished,
                       .source = options_.login.client_name,
                       .cause = call.error ? &*call.error : nullptr,
                       .call = &report});
}

phase_times connection_core::times_of(pending_call const& call, std::optional<time_point> written,
                                      time_point t) const {
  phase_times out;
  auto begin = call.started;
  if (call.resent != pending_call::never) {
    out.add(phase::read, call.resent - begin);
    begin = call.resent;
  }
  if (call.staged == pending_call::never) {
    setup_.add_to(out, begin, t);
    return out;
  }
  setup_.add_to(out, begin, call.staged);
  auto const sent = std::max(call.staged, written.value_or(t));
  out.add(phase::write, sent - call.staged);
  out.add(phase::read, t - sent);
  return out;
}

std::vector<pending_info> connection_core::pending() const {
  std::vector<pending_info> out;
  auto const t = port_.now();
  for (auto const& seen : queue_.live(life_.waiting_phase())) {
    auto const* call = call_of(seen.tag);
    out.push_back({call->name, t - call->started, seen.phase});
  }
  return out;
}

void connection_core::publish() {
  auto const q = queue_.snapshot();
  auto const l = life_.snapshot();
  auto out = counts_;
  out.state = l.state;
  out.attempts = l.attempts;
  out.readied = l.readied;
  out.failed = l.failed;
  out.lost = l.lost;
  out.retired = l.retired;
  out.discarded_replies = q.discarded_replies;
  out.waiting = q.waiting;
  out.owed = q.owed;
  out.late_owed = q.tombstones;
  for (; told_discarded_ < q.discarded_replies; ++told_discarded_) tell(event_kind::late_reply_discarded);
  std::lock_guard const lock(published_mutex_);
  published_ = out;
}

connection_snapshot connection_core::snapshot() const {
  std::lock_guard const lock(published_mutex_);
  return published_;
}

}  // namespace redoubt::detail
