// SPDX-License-Identifier: BSL-1.0
//
// One turn of the fake client: what the server said, what is due, what may be sent; then the handlers. A call
// is limited as in the real client, and nothing more is sent while a reply is overdue.
#include <algorithm>

#include <boost/asio/bind_executor.hpp>
#include <redoubt/net/connection.hpp>
#include <redoubt/resp/decode.hpp>
#include <redoubt/testing/fake_client_state.hpp>

namespace redoubt::testing::detail {

void fake_client_state::turn() {
  if (shut_) return;
  auto const keep = shared_from_this();
  in_turn_ = true;
  auto const now = timer_.now();
  server_.on_time(now);
  take_arrivals(now);
  expire(now);
  send_waiting(now);
  take_arrivals(now);  // a fake server answers at once
  send_waiting(now);   // the second command of a script
  arm(now);
  in_turn_ = false;
  redoubt::detail::deliver_all(executor_, std::move(ended_));
}

void fake_client_state::take_arrivals(time_point now) {
  for (auto& out : server_.take_output()) {
    if (out.to != session_) continue;
    auto const earliest = arrivals_.empty() ? now : std::max(now, arrivals_.back().at);
    arrivals_.push_back({std::max(earliest, saturating_add(now, out.delay)), std::move(out)});
  }
  while (!arrivals_.empty() && arrivals_.front().at <= now) {
    auto const what = std::move(arrivals_.front().what);
    arrivals_.pop_front();
    if (!what.bytes.empty()) read(what.bytes, now);
    if (session_ && (what.close || what.reset)) lose_connection(errc::connection_lost, now);
  }
  if (session_ && !ready_) ready_ = !server_.paused();
}

void fake_client_state::read(std::string_view bytes, time_point now) {
  last_bytes_ = now;
  reader_->feed(bytes);
  while (session_) {
    auto next = reader_->next();
    if (!next) break;
    if (sent_.empty()) return lose_connection(errc::protocol_error, now);  // nobody asked for this
    auto& entry = sent_.front();
    if (entry.call != nullptr && entry.call->replies == 1) {
      entry.call->value = *std::move(next);
    } else if (entry.call != nullptr) {
      entry.call->values.push_back(*std::move(next));
    }
    if (--entry.replies_left > 0) continue;
    answered(entry, now);
    sent_.pop_front();
  }
  if (session_ && reader_->error() != errc::unspecified) lose_connection(reader_->error(), now);
}

void fake_client_state::answered(sent_call& entry, time_point now) {
  auto* const call = entry.call;
  if (call == nullptr) return;
  if (entry.reply_is_lost) {
    end(call, {.code = errc::connection_lost, .phase = phase::read}, now);
  } else if (call->replies == 1 && call->value.is_error()) {
    call->error = to_failure(call->value.as_error());
    if (call->again()) {
      waiting_.push_back({call, saturating_add(now, options_.attempt_timeout)});
    } else {
      end(call, *call->error, now);
    }
  } else {
    ended_.push(call);
  }
}

void fake_client_state::lose_connection(errc code, time_point now) {
  if (session_) server_.on_closed(*session_, now);
  session_.reset();
  reader_.reset();
  arrivals_.clear();
  for (auto const& one : std::exchange(sent_, {})) {
    if (one.call != nullptr) end(one.call, {.code = code, .phase = phase::read}, now);
  }
}

time_point fake_client_state::limit_of(pending_call const& call, time_point attempt_by) const noexcept {
  return call.own_budget ? call.by.at() : std::min(call.by.at(), attempt_by);
}

void fake_client_state::expire(time_point now) {
  auto const where = ready_ || !session_ ? phase::queue : phase::handshake;
  std::erase_if(waiting_, [&](waiting_call const& one) {
    if (limit_of(*one.call, one.attempt_by) > now) return false;
    end(one.call, {.code = errc::deadline_exceeded, .effect = effect::none, .phase = where}, now);
    return true;
  });
  for (auto& one : sent_) {
    if (one.call == nullptr || limit_of(*one.call, one.attempt_by) > now) continue;
    end(std::exchange(one.call, nullptr), {.code = errc::deadline_exceeded, .phase = phase::read}, now);
  }
}

bool fake_client_state::gate_closed(time_point now) const noexcept {
  if (sent_.empty()) return false;
  return saturating_add(std::max(sent_.front().sent_at, last_bytes_), options_.attempt_timeout) <= now;
}

bool fake_client_state::connected(time_point now) {
  if (session_) return ready_;
  if (!server_.accepts()) {
    for (auto const& one : std::exchange(waiting_, {})) {
      end(one.call, {.code = errc::connection_refused, .effect = effect::none, .phase = phase::connect}, now);
    }
    return false;
  }
  session_ = server_.open(now);
  ready_ = !server_.paused();
  reader_.emplace();
  return ready_;
}

void fake_client_state::send_waiting(time_point now) {
  // The server may end the session at each command; the next one then opens another.
  while (!waiting_.empty() && connected(now) && !gate_closed(now)) {
    auto const [call, attempt_by] = waiting_.front();
    waiting_.pop_front();
    sent_.push_back({call, call->replies, now, attempt_by, std::exchange(lose_next_, false)});
    server_.on_bytes(*session_, call->wire(), now);
    take_arrivals(now);
  }
}

void fake_client_state::arm(time_point now) {
  auto next = time_point::max();
  for (auto const& one : waiting_) next = std::min(next, limit_of(*one.call, one.attempt_by));
  for (auto const& one : sent_) {
    if (one.call != nullptr) next = std::min(next, limit_of(*one.call, one.attempt_by));
  }
  if (next != time_point::max()) {
    if (!arrivals_.empty()) next = std::min(next, arrivals_.front().at);
    if (auto const wakeup = server_.next_wakeup()) next = std::min(next, std::max(*wakeup, now));
  }
  if (armed_ == (next == time_point::max() ? std::nullopt : std::optional(next))) return;
  timer_.cancel();
  armed_.reset();
  auto const number = ++armed_number_;
  if (next == time_point::max()) return;  // nobody waits: the context may end
  armed_ = next;
  timer_.async_wait_until(
      next, asio::bind_executor(executor_, [weak = weak_from_this(), number](boost::system::error_code) {
        auto const self = weak.lock();
        if (!self || self->armed_number_ != number) return;
        self->armed_.reset();
        self->turn();
      }));
}

}  // namespace redoubt::testing::detail
