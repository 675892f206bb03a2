// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/call_queue.hpp>

#include <algorithm>
#include <cassert>

namespace redoubt {

call_queue::call_queue(call_queue_options options) : options_(options) {}

time_point call_queue::limit_of(slot const& s, time_point now) const noexcept {
  if (s.own_budget) return s.by.at();
  auto const stage = ready_ ? options_.attempt_timeout : options_.connect_timeout;
  return std::min(s.by.at(), saturating_add(now, stage));
}

void call_queue::arm(std::uint32_t index, time_point now) {
  auto& s = slots_[index];
  s.limit = limit_of(s, now);
  wheel_.remove(index);
  wheel_.add(index, s.limit, now);
}

call_id call_queue::submit(call_request const& request, time_point now) {
  assert(request.replies > 0);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  auto const index = free_.back();
  free_.pop_back();
  auto& s = slots_[index];
  s.tag = request.tag;
  s.bytes = request.bytes;
  s.replies = request.replies;
  s.by = request.by;
  s.own_budget = request.own_budget;
  s.where = state::waiting;
  s.previous = waiting_tail_;
  s.next = none;
  if (waiting_tail_ != none) {
    slots_[waiting_tail_].next = index;
  } else {
    waiting_head_ = index;
  }
  waiting_tail_ = index;
  ++waiting_count_;
  waiting_bytes_ += s.bytes;
  arm(index, now);
  return {index, s.generation};
}

void call_queue::on_ready(time_point now) {
  ready_ = true;
  last_byte_ = now;
  overdue_ = false;
  for (auto index = waiting_head_; index != none; index = slots_[index].next) arm(index, now);
}

void call_queue::take_batch(std::size_t bytes_max, time_point now, std::vector<std::uint64_t>& batch) {
  if (!ready_ || staged_ > 0 || answered_early_ > 0 || waiting_head_ == none || gate_closed(now)) return;
  std::size_t bytes = 0;
  for (auto following = waiting_head_; following != none;) {
    auto const index = following;
    auto& s = slots_[index];
    following = s.next;
    if (s.limit <= now) continue;
    if (bytes > 0 && bytes + s.bytes > bytes_max) break;
    bytes += s.bytes;
    unlink_waiting(index);
    s.where = state::owed;
    ++owed_count_;
    // One tick more than the budget, so that the call ends by its deadline and not by a stall at the same
    // time.
    constexpr auto tick = deadline_wheel::tick;
    auto const patience =
        s.own_budget ? std::min(s.by.left(now), duration::max() - tick) + tick : options_.attempt_timeout;
    s.order = first_order_ + sent_.size();
    sent_.push_back({index, s.replies, s.bytes, now, std::max(patience, options_.attempt_timeout)});
    ++staged_;
    batch.push_back(s.tag);
  }
}

std::optional<time_point> call_queue::idle_since() const noexcept {
  if (!ready_ || !sent_.empty() || answered_early_ > 0 || waiting_head_ != none) return std::nullopt;
  return last_byte_;
}

void call_queue::stage_own(std::size_t bytes, time_point now) {
  assert(idle_since());
  sent_.push_back({.bytes = bytes, .since = now, .patience = options_.attempt_timeout, .own = true});
  staged_ = 1;
  own_owed_ = true;
}

void call_queue::on_written(std::size_t bytes, time_point now) {
  if (bytes > 0) last_written_ = now;
  auto const early = std::min(bytes, answered_early_);
  answered_early_ -= early;
  bytes -= early;
  while (staged_ > 0) {
    auto& head = sent_[sent_.size() - staged_];
    auto const left = head.bytes - head_written_;
    if (bytes < left) {
      head_written_ += bytes;
      // A call that ended before its first byte went out is served like one that ended after its last: the
      // command is finished. Only one that ran out of time in the middle says that the connection is not
      // taking it.
      if (head.expired && head_written_ > 0) half_written_ = true;
      break;
    }
    bytes -= left;
    head_written_ = 0;
    head.since = now;
    --staged_;
  }
}

void call_queue::on_bytes(time_point now) {
  last_byte_ = now;
  overdue_ = false;
}

matched_reply call_queue::on_reply() {
  if (sent_.empty()) return {};
  auto const index = sent_.front().owner;
  auto const since = sent_.front().since;
  bool const last = --sent_.front().replies == 0;
  bool const own = sent_.front().own;
  if (last) pop_answered();
  if (own) {
    own_owed_ = false;
    return {matched_reply::kind::own, 0, true};
  }
  if (index == none) {
    ++discarded_;
    return {matched_reply::kind::discarded, 0, last};
  }
  auto const tag = slots_[index].tag;
  if (last) {
    --owed_count_;
    wheel_.remove(index);
    release(index);
  }
  return {matched_reply::kind::answer, tag, last, since};
}

void call_queue::pop_answered() noexcept {
  // A reply may overtake the completion of our own write. What that completion will report of this entry is
  // remembered, so that it is not counted for the next one.
  if (staged_ == sent_.size()) {
    answered_early_ += sent_.front().bytes - head_written_;
    head_written_ = 0;
    --staged_;
  }
  (void)sent_.pop_front();
  ++first_order_;
}

void call_queue::on_time(time_point now, phase waiting_phase, std::vector<ended_call>& ended) {
  due_.clear();
  wheel_.on_time(now, due_);
  for (auto const index : due_) {
    if (slots_[index].where == state::waiting) {
      ended.push_back(remove_waiting(index, waiting_phase));
    } else {
      auto const at = position_of(index);
      if (now - std::max(sent_[at].since, last_byte_) >= options_.attempt_timeout) overdue_ = true;
      ended.push_back(abandon(index, true));
    }
  }
}

std::optional<ended_call> call_queue::cancel(call_id id, phase waiting_phase) {
  if (id.index >= slots_.size() || slots_[id.index].generation != id.generation) return std::nullopt;
  switch (slots_[id.index].where) {
    case state::free: return std::nullopt;
    case state::waiting: return remove_waiting(id.index, waiting_phase);
    case state::owed: return abandon(id.index, false);
  }
  return std::nullopt;
}

std::size_t call_queue::position_of(std::uint32_t index) const noexcept {
  return static_cast<std::size_t>(slots_[index].order - first_order_);
}

ended_call call_queue::abandon(std::uint32_t index, bool expired) noexcept {
  auto const at = position_of(index);
  bool const staged = at >= sent_.size() - staged_;
  bool const cut = staged && at == sent_.size() - staged_ && head_written_ > 0;
  if (cut && expired) half_written_ = true;
  sent_[at].owner = none;
  sent_[at].expired = expired;
  // The long budget was its caller's; without one the reply is worth no more silence than any other.
  sent_[at].patience = options_.attempt_timeout;
  ended_call out{slots_[index].tag, effect::unknown, staged ? phase::write : phase::read, sent_[at].since};
  --owed_count_;
  ++abandoned_;
  wheel_.remove(index);
  release(index);
  return out;
}

ended_call call_queue::remove_waiting(std::uint32_t index, phase waiting_phase) noexcept {
  ended_call out{slots_[index].tag, effect::none, waiting_phase};
  wheel_.remove(index);
  unlink_waiting(index);
  release(index);
  return out;
}

void call_queue::on_lost(std::vector<ended_call>& ended) {
  auto const written = sent_.size() - staged_;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    auto const index = sent_[i].owner;
    if (index == none) continue;
    ended.push_back(
        {slots_[index].tag, effect::unknown, i < written ? phase::read : phase::write, sent_[i].since});
    --owed_count_;
    wheel_.remove(index);
    release(index);
  }
  first_order_ += sent_.size();
  sent_.clear();
  staged_ = 0;
  head_written_ = 0;
  answered_early_ = 0;
  half_written_ = false;
  own_owed_ = false;
  overdue_ = false;
  ready_ = false;
}

void call_queue::end_waiting(phase waiting_phase, std::vector<ended_call>& ended) {
  while (waiting_head_ != none) ended.push_back(remove_waiting(waiting_head_, waiting_phase));
}

time_point call_queue::quiet_since() const noexcept { return std::max(sent_.front().since, last_byte_); }

bool call_queue::gate_closed(time_point now) const noexcept {
  if (sent_.empty()) return false;
  return overdue_ || now - quiet_since() >= sent_.front().patience;
}

bool call_queue::stalled(time_point now) const noexcept {
  if (auto const by = unread_until()) return now >= *by;
  if (sent_.empty()) return false;
  if (crowded()) return true;
  return now - quiet_since() >= std::max(options_.stall_limit, sent_.front().patience);
}

// A peer that has answered what it has not read yet owes no reply; it must take the rest all the same.
std::optional<time_point> call_queue::unread_until() const noexcept {
  if (!sent_.empty() || answered_early_ == 0) return std::nullopt;
  return saturating_add(std::max(last_byte_, last_written_), options_.stall_limit);
}

std::optional<time_point> call_queue::next_wakeup() const noexcept {
  auto next = wheel_.next_wakeup();
  if (auto const by = unread_until()) next = next ? std::min(*next, *by) : by;
  if (!sent_.empty()) {
    auto const stall = saturating_add(quiet_since(), std::max(options_.stall_limit, sent_.front().patience));
    next = next ? std::min(*next, stall) : stall;
  }
  return next;
}

void call_queue::unlink_waiting(std::uint32_t index) noexcept {
  auto& s = slots_[index];
  (s.previous != none ? slots_[s.previous].next : waiting_head_) = s.next;
  (s.next != none ? slots_[s.next].previous : waiting_tail_) = s.previous;
  s.previous = s.next = none;
  --waiting_count_;
  waiting_bytes_ -= s.bytes;
}

void call_queue::release(std::uint32_t index) noexcept {
  auto& s = slots_[index];
  s.where = state::free;
  ++s.generation;
  free_.push_back(index);
}

call_queue_snapshot call_queue::snapshot() const noexcept {
  return {waiting_count_, owed_count_, tombstones(), waiting_bytes_, discarded_, abandoned_};
}

std::vector<ended_call> call_queue::live(phase waiting_phase) const {
  std::vector<ended_call> out;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i].owner == none) continue;
    out.push_back({slots_[sent_[i].owner].tag, effect::unknown,
                   i < sent_.size() - staged_ ? phase::read : phase::write});
  }
  for (auto index = waiting_head_; index != none; index = slots_[index].next) {
    out.push_back({slots_[index].tag, effect::none, waiting_phase});
  }
  return out;
}

bool call_queue::check() const {
  std::size_t waiting = 0;
  std::size_t bytes = 0;
  auto previous = none;
  for (auto index = waiting_head_; index != none; index = slots_[index].next) {
    auto const& s = slots_[index];
    if (s.where != state::waiting || s.previous != previous || !wheel_.contains(index)) return false;
    ++waiting;
    bytes += s.bytes;
    previous = index;
    if (waiting > slots_.size()) return false;
  }
  if (previous != waiting_tail_ || waiting != waiting_count_ || bytes != waiting_bytes_) return false;
  std::size_t owed = 0;
  std::size_t own = 0;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i].replies == 0) return false;
    if (sent_[i].own && sent_[i].owner != none) return false;
    own += sent_[i].own ? 1 : 0;
    if (sent_[i].owner == none) continue;
    if (slots_[sent_[i].owner].where != state::owed || !wheel_.contains(sent_[i].owner)) return false;
    if (position_of(sent_[i].owner) != i) return false;
    ++owed;
  }
  if (own != (own_owed_ ? 1U : 0U)) return false;
  if (owed != owed_count_ || staged_ > sent_.size()) return false;
  if (staged_ == 0 ? head_written_ != 0 : head_written_ >= sent_[sent_.size() - staged_].bytes) return false;
  return waiting + owed + free_.size() == slots_.size() && wheel_.size() == waiting + owed && wheel_.check();
}

}  // namespace redoubt
