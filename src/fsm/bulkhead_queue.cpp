// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/bulkhead_queue.hpp>

#include <algorithm>
#include <cassert>

namespace redoubt {

bulkhead_queue::entry bulkhead_queue::enter(time_point now, deadline by) {
  if (by.passed(now)) {
    ++now_.expired;
    return {entry::kind::expired, 0};
  }
  if (now_.used < now_.slots || queue_.size() >= waiters_) return {try_enter(), 0};
  auto const id = next_++;
  queue_.emplace(id, by);
  return {entry::kind::queued, id};
}

bulkhead_queue::entry::kind bulkhead_queue::try_enter() {
  if (now_.used >= now_.slots) {
    ++now_.refused;
    return entry::kind::full;
  }
  ++now_.used;
  ++now_.granted;
  return entry::kind::granted;
}

std::optional<bulkhead_queue::waiter_id> bulkhead_queue::leave() {
  assert(now_.used > 0);
  if (queue_.empty()) {
    --now_.used;
    return std::nullopt;
  }
  auto const first = queue_.begin()->first;
  queue_.erase(queue_.begin());
  ++now_.granted;
  return first;
}

bool bulkhead_queue::withdraw(waiter_id id) {
  if (queue_.erase(id) == 0) return false;
  ++now_.withdrawn;
  return true;
}

void bulkhead_queue::on_time(time_point now, ring<waiter_id>& expired) {
  for (auto at = queue_.begin(); at != queue_.end();) {
    if (!at->second.passed(now)) {
      ++at;
      continue;
    }
    expired.push_back(at->first);
    ++now_.expired;
    at = queue_.erase(at);
  }
}

time_point bulkhead_queue::next_wakeup() const noexcept {
  auto first = time_point::max();
  for (auto const& [id, by] : queue_) first = std::min(first, by.at());
  return first;
}

bulkhead_snapshot bulkhead_queue::snapshot() const noexcept {
  auto out = now_;
  out.waiting = static_cast<std::uint32_t>(queue_.size());
  return out;
}

void bulkhead_queue::check() const noexcept {
  assert(now_.used <= now_.slots);
  assert(queue_.size() <= waiters_);
  assert(queue_.empty() || now_.used == now_.slots);
  assert(queue_.empty() || queue_.rbegin()->first < next_);
}

}  // namespace redoubt
