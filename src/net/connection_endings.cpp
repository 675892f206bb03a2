// SPDX-License-Identifier: BSL-1.0
//
// How a connection core ends a call: with its reply, with a failure, or not yet.
#include <redoubt/net/connection_core.hpp>
#include <redoubt/resp/decode.hpp>

namespace redoubt::detail {

void connection_core::end_all(std::vector<ended_call>& ended, errc code, std::string_view note,
                              time_point t) {
  auto const text = note.empty() ? place_ : placed({}, note).detail;
  for (auto const& e : ended) {
    finish(call_of(e.tag), failure{.code = code, .effect = e.effect, .phase = e.phase, .detail = text}, t,
           e.written());
  }
  ended.clear();
}

void connection_core::finish(pending_call* call, failure why, time_point t,
                             std::optional<time_point> written) {
  why.elapsed = t - call->started;
  why.command = call->name;
  why.attempts = why.effect == effect::unknown ? 1 : 0;
  if (!why.detail) why.detail = place_;
  if (why.rejected) {
    ++counts_.rejected;
    tell(event_kind::call_rejected, &why);
  } else if (why.code == errc::deadline_exceeded) {
    ++counts_.expired;
  } else if (why.code == errc::cancelled) {
    ++counts_.cancelled;
  } else {
    ++counts_.failed_calls;
  }
  if (!why.rejected) why.times = times_of(*call, written, t);
  call->error = std::move(why);
  if (tells_calls_ && !call->error->rejected) tell_finished(*call, call->error->times, t);
  if (call->cancel_key != 0) cancellable_.erase(call->cancel_key);
  gate_->unqueue(std::exchange(call->charged_bytes, 0));
  ++leaving_;
  done_.push(call);
}

void connection_core::finish_answered(pending_call* call, time_point written, time_point t) {
  if (call->replies == 1 && call->value.is_error()) {
    auto why = placed(to_failure(call->value.as_error()), {});
    if (call->runs_script) why.effect = effect_inside_script(call->value.as_error());
    why.elapsed = t - call->started;
    why.command = call->name;
    why.times = times_of(*call, written, t);
    call->error = std::move(why);
    if (call->again()) return send_again(call, t);
  }
  ++counts_.answered;
  if (tells_calls_) tell_finished(*call, call->error ? call->error->times : times_of(*call, written, t), t);
  if (call->cancel_key != 0) cancellable_.erase(call->cancel_key);
  ++leaving_;
  done_.push(call);
}

void connection_core::send_again(pending_call* call, time_point t) {
  // Not through the inbox: a client that is closing still owes this call its end, and a cancellation must
  // find it.
  call->resent = t;
  call->staged = pending_call::never;
  call->charged_bytes = call->wire().size();
  gate_->queue(call->charged_bytes);
  if (call->by.passed(t))
    return finish(call, failure{.code = errc::deadline_exceeded, .effect = effect::none}, t);
  call->id = queue_.submit({tag_of(call), call->wire().size(), call->replies, call->by, call->own_budget}, t);
}

}  // namespace redoubt::detail
