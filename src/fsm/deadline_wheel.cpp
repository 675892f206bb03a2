// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/deadline_wheel.hpp>

#include <algorithm>
#include <bit>

namespace redoubt {
namespace {

constexpr auto tick_count = deadline_wheel::tick.count();

/// The first tick at or after `when`: rounding up is what makes "never early" true.
std::int64_t due_tick(time_point when) noexcept {
  auto const t = when.time_since_epoch().count();
  return t / tick_count + (t % tick_count > 0 ? 1 : 0);
}

/// The last tick at or before `now`.
std::int64_t passed_tick(time_point now) noexcept {
  auto const t = now.time_since_epoch().count();
  return t / tick_count - (t % tick_count < 0 ? 1 : 0);
}

}  // namespace

void deadline_wheel::link(std::uint32_t index, std::uint16_t bucket) noexcept {
  auto& n = nodes_[index];
  n.bucket = bucket;
  n.previous = none;
  n.next = heads_[bucket];
  if (n.next != none) nodes_[n.next].previous = index;
  heads_[bucket] = index;
  occupied_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
}

void deadline_wheel::add(std::uint32_t index, time_point when, time_point now) {
  if (index >= nodes_.size()) nodes_.resize(std::max<std::size_t>(index + 1, nodes_.size() * 2));
  if (size_ == 0) swept_ = passed_tick(now);
  auto const due = due_tick(when);
  nodes_[index].due = due;
  // The bucket of a tick that was swept already is not looked at for a whole turn: take the next one instead.
  // `due` stays what it is, so the item is reported when that bucket is.
  auto const shelf = static_cast<std::uint64_t>(std::max(due, swept_ + 1));
  link(index, static_cast<std::uint16_t>(shelf % buckets));
  ++size_;
}

void deadline_wheel::remove(std::uint32_t index) noexcept {
  if (!contains(index)) return;
  auto& n = nodes_[index];
  if (n.next != none) nodes_[n.next].previous = n.previous;
  if (n.previous != none) {
    nodes_[n.previous].next = n.next;
  } else {
    heads_[n.bucket] = n.next;
    if (n.next == none) occupied_[n.bucket / 64] &= ~(std::uint64_t{1} << (n.bucket % 64));
  }
  n.bucket = no_bucket;
  --size_;
}

void deadline_wheel::sweep(std::uint16_t bucket, std::int64_t until, std::vector<std::uint32_t>& expired) {
  for (auto index = heads_[bucket]; index != none;) {
    auto const next = nodes_[index].next;
    if (nodes_[index].due <= until) {
      remove(index);
      expired.push_back(index);
    }
    index = next;
  }
}

void deadline_wheel::on_time(time_point now, std::vector<std::uint32_t>& expired) {
  if (size_ == 0) return;
  auto const until = passed_tick(now);
  // The bucket after the last swept one may hold items whose time has passed (see add()), so it is always
  // swept.
  auto const first = swept_ + 1;
  auto const last = std::min(std::max(until, first), first + static_cast<std::int64_t>(buckets) - 1);
  for (auto t = first; t <= last && size_ > 0; ++t) {
    auto const bucket = static_cast<std::uint16_t>(static_cast<std::uint64_t>(t) % buckets);
    if (occupied_[bucket / 64] & (std::uint64_t{1} << (bucket % 64))) sweep(bucket, until, expired);
  }
  swept_ = std::max(swept_, until);
}

std::optional<time_point> deadline_wheel::next_wakeup() const noexcept {
  if (size_ == 0) return std::nullopt;
  auto const start = static_cast<std::uint64_t>(swept_ + 1) % buckets;
  for (std::size_t step = 0; step < buckets;) {
    auto const bucket = (start + step) % buckets;
    auto const word = occupied_[bucket / 64] >> (bucket % 64);
    if (word == 0) {
      step += 64 - bucket % 64;
      continue;
    }
    auto const distance = step + static_cast<std::size_t>(std::countr_zero(word));
    auto const at = swept_ + 1 + static_cast<std::int64_t>(distance);
    return time_point(duration(at * tick_count));
  }
  return std::nullopt;
}

bool deadline_wheel::check() const {
  std::size_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    bool const bit = (occupied_[bucket / 64] & (std::uint64_t{1} << (bucket % 64))) != 0;
    if (bit != (heads_[bucket] != none)) return false;
    auto previous = none;
    for (auto index = heads_[bucket]; index != none; index = nodes_[index].next) {
      if (nodes_[index].bucket != bucket || nodes_[index].previous != previous) return false;
      previous = index;
      if (++seen > nodes_.size()) return false;
    }
  }
  return seen == size_;
}

}  // namespace redoubt
