// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/recorder.hpp>

#include <algorithm>
#include <numeric>

namespace redoubt::testing {

recorder::recorder(std::size_t limit, bool calls) : limit_(std::max<std::size_t>(limit, 1)), calls_(calls) {}

void recorder::on(event const& e) noexcept {
  entry kept{e.kind, std::string(e.source), {}, {}};
  if (e.cause != nullptr) kept.cause = *e.cause;
  if (e.call != nullptr) kept.call = *e.call;
  std::lock_guard const lock(mutex_);
  auto const place = static_cast<std::size_t>(e.kind);
  if (counts_.size() <= place) counts_.resize(place + 1);
  ++counts_[place];
  if (entries_.size() == limit_) entries_.pop_front();
  entries_.push_back(std::move(kept));
}

std::size_t recorder::count(event_kind kind) const {
  std::lock_guard const lock(mutex_);
  auto const place = static_cast<std::size_t>(kind);
  return place < counts_.size() ? counts_[place] : 0;
}

std::size_t recorder::count() const {
  std::lock_guard const lock(mutex_);
  return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
}

std::optional<recorder::entry> recorder::last() const {
  std::lock_guard const lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  return entries_.back();
}

std::optional<recorder::entry> recorder::last(event_kind kind) const {
  std::lock_guard const lock(mutex_);
  auto const found =
      std::find_if(entries_.rbegin(), entries_.rend(), [kind](auto const& e) { return e.kind == kind; });
  if (found == entries_.rend()) return std::nullopt;
  return *found;
}

std::vector<recorder::entry> recorder::entries() const {
  std::lock_guard const lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

void recorder::clear() {
  std::lock_guard const lock(mutex_);
  entries_.clear();
  counts_.clear();
}

}  // namespace redoubt::testing
