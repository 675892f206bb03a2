// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/bulkhead_queue.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>

#include <redoubt/core/option_error.hpp>

namespace redoubt {
namespace {

std::size_t index(slot_class what) noexcept {
  return static_cast<std::size_t>(what.priority) * 2 + static_cast<std::size_t>(what.use);
}

}  // namespace

void bulkhead_limits::validate() const {
  auto const require = [](bool ok, char const* field, auto value, char const* rule) {
    detail::require_option(ok, "bulkhead", field, value, rule);
  };
  require(slots >= 1 && slots <= 65536, "slots", std::uint64_t{slots}, "must be 1 to 65536");
  require(waiters <= 65536, "waiters", std::uint64_t{waiters}, "must be 0 to 65536");
  auto const allowance = [&](std::optional<std::uint32_t> value, char const* field) {
    if (value) require(*value >= 1 && *value <= 65536, field, std::uint64_t{*value}, "must be 1 to 65536");
  };
  allowance(shares.normal, "shares.normal");
  allowance(shares.fallback, "shares.fallback");
  require(shares.low_priority > 0 && shares.low_priority <= 1, "shares.low_priority", shares.low_priority,
          "must be above 0, at most 1");
  require(shares.normal_priority > 0 && shares.normal_priority <= 1, "shares.normal_priority",
          shares.normal_priority, "must be above 0, at most 1");
}

void bulkhead_queue::set(bulkhead_limits const& limits) noexcept {
  limits_ = limits;
  auto const part = [&](double share) {
    // At least one: a share that rounds to nothing would be a queue nobody leaves.
    return std::max(1u, static_cast<std::uint32_t>(std::floor(share * limits.slots)));
  };
  auto const& shares = limits.shares;
  std::array const ceilings{part(std::min(shares.low_priority, shares.normal_priority)),
                            part(shares.normal_priority), limits.slots};
  for (std::size_t i = 0; i < ceilings.size(); ++i)
    shared(ceiling_[i]).store(ceilings[i], std::memory_order_relaxed);
  shared(allowance_[0]).store(limits.shares.normal.value_or(limits.slots), std::memory_order_relaxed);
  shared(allowance_[1]).store(limits.shares.fallback.value_or(limits.slots), std::memory_order_relaxed);
}

bool bulkhead_queue::take(slot_class what) noexcept {
  auto word = load(word_);
  while (fits(word, what)) {
    if (shared(word_).compare_exchange_weak(word, word + one(what), std::memory_order_acq_rel)) {
      granted_.add();
      return true;
    }
  }
  return false;
}

bulkhead_queue::entry bulkhead_queue::enter(time_point now, deadline by, slot_class what) {
  if (by.passed(now)) {
    add(counts_.expired);
    return {entry::kind::expired, 0};
  }
  // Nobody who could have a slot waits, so whoever fits overtakes nobody.
  if (take(what)) return {entry::kind::granted, 0};
  if (waiting() >= limits_.waiters) {
    add(counts_.refused);
    return {entry::kind::full, 0};
  }
  // From here on nobody gives a slot back past this waiter; one that has just been given back is taken here.
  auto word = load(word_);
  for (;;) {
    auto const next = fits(word, what) ? word + one(what) : word | somebody_waits;
    if (!shared(word_).compare_exchange_weak(word, next, std::memory_order_acq_rel)) continue;
    if (used(next) == used(word)) break;
    granted_.add();
    return {entry::kind::granted, 0};
  }
  auto const id = next_++;
  lines_[index(what)].emplace(id, by);
  return {entry::kind::queued, id};
}

bool bulkhead_queue::has_free_slot(slot_class what) const noexcept { return fits(load(word_), what); }

bulkhead_queue::entry::kind bulkhead_queue::try_enter(slot_class what) {
  if (take(what)) return entry::kind::granted;
  add(counts_.refused);
  return entry::kind::full;
}

std::optional<bulkhead_queue::waiter_id> bulkhead_queue::leave(slot_class what) {
  assert(used_by(load(word_), what.use) > 0);
  return hand_over(one(what));
}

// Whose turn it is when the slots are used like this: the highest priority that fits, then who came first.
std::optional<slot_class> bulkhead_queue::next_for(std::uint64_t word) const noexcept {
  for (auto const priority : {slot_priority::high, slot_priority::normal, slot_priority::low}) {
    std::optional<slot_class> found;
    for (auto const use : {slot_use::normal, slot_use::fallback}) {
      slot_class const what{use, priority};
      auto const& line = lines_[index(what)];
      if (line.empty() || !fits(word, what)) continue;
      if (!found || line.begin()->first < lines_[index(*found)].begin()->first) found = what;
    }
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<bulkhead_queue::waiter_id> bulkhead_queue::hand_over(std::uint64_t given_back) {
  auto word = load(word_);
  for (;;) {
    auto next = word - given_back;
    auto const whose = next_for(next);
    if (whose) next += one(*whose);
    if (!shared(word_).compare_exchange_weak(word, next, std::memory_order_acq_rel)) continue;
    if (!whose) return std::nullopt;
    auto& line = lines_[index(*whose)];
    auto const id = line.begin()->first;
    line.erase(line.begin());
    granted_.add();
    mark();
    return id;
  }
}

// Opens the lock-free way again when the last waiter has gone.
void bulkhead_queue::mark() noexcept {
  if (waiting() == 0) shared(word_).fetch_and(~somebody_waits, std::memory_order_acq_rel);
}

bool bulkhead_queue::withdraw(waiter_id id) {
  for (auto& line : lines_) {
    if (line.erase(id) == 0) continue;
    add(counts_.withdrawn);
    mark();
    return true;
  }
  return false;
}

void bulkhead_queue::on_time(time_point now, ring<waiter_id>& expired) {
  for (auto& line : lines_) {
    for (auto at = line.begin(); at != line.end();) {
      if (!at->second.passed(now)) {
        ++at;
        continue;
      }
      expired.push_back(at->first);
      add(counts_.expired);
      at = line.erase(at);
    }
  }
  mark();
}

void bulkhead_queue::resize(bulkhead_limits const& limits, ring<waiter_id>& granted) {
  set(limits);
  while (auto const id = hand_over(0)) granted.push_back(*id);
}

time_point bulkhead_queue::next_wakeup() const noexcept {
  auto first = time_point::max();
  for (auto const& line : lines_) {
    for (auto const& [id, by] : line) first = std::min(first, by.at());
  }
  return first;
}

bool bulkhead_queue::abandon() noexcept {
  assert(waiting() == 0);
  return used(shared(word_).fetch_or(abandoned, std::memory_order_acq_rel)) > 0;
}

bool bulkhead_queue::over() const noexcept {
  auto const word = load(word_);
  return (word & abandoned) != 0 && used(word) == 0;
}

std::uint32_t bulkhead_queue::waiting() const noexcept {
  std::size_t sum = 0;
  for (auto const& line : lines_) sum += line.size();
  return static_cast<std::uint32_t>(sum);
}

bulkhead_snapshot bulkhead_queue::snapshot() const noexcept {
  bulkhead_snapshot out;
  auto const word = load(word_);
  out.slots = limits_.slots;
  out.used = used(word);
  out.fallback = used_by(word, slot_use::fallback);
  out.waiting = waiting();
  out.granted = granted_.read();
  out.refused = load(counts_.refused);
  out.expired = load(counts_.expired);
  out.withdrawn = load(counts_.withdrawn);
  return out;
}

void bulkhead_queue::check() const noexcept {
  auto const word = load(word_);
  assert((waiting() > 0) == ((word & somebody_waits) != 0));
  assert(!next_for(word));
  for (auto const& line : lines_) {
    assert(line.empty() || line.rbegin()->first < next_);
    (void)line;
  }
  (void)word;
}

}  // namespace redoubt
