// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_window.hpp>

#include <algorithm>
#include <atomic>

namespace redoubt {

breaker_window& breaker_window::operator=(breaker_window const& other) noexcept {
  if (this == &other) return *this;
  buckets_per_ns_ = other.buckets_per_ns_;
  buckets_ = other.buckets_;
  for (std::size_t s = 0; s < good_.size(); ++s) {
    for (std::size_t i = 0; i < buckets; ++i) good_[s][i] = read(other.good_[s][i]);
  }
  return *this;
}

std::uint64_t breaker_window::reset(duration length) noexcept {
  auto const nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(2, length.count() / buckets));
  atomic_word(buckets_per_ns_).store(~std::uint64_t{0} / nanoseconds + 1, std::memory_order_relaxed);
  std::uint64_t let_go = 0;
  buckets_ = {};
  // Tick 0 is far in the past for every clock that has run for a window's length.
  for (auto& row : good_) {
    for (auto& good : row) let_go += atomic_word(good).exchange(0, std::memory_order_relaxed) & count_mask;
  }
  return let_go;
}

std::uint64_t breaker_window::held() const noexcept {
  std::uint64_t sum = 0;
  for (auto const& row : good_) {
    for (auto const& good : row) sum += read(good) & count_mask;
  }
  return sum;
}

void breaker_window::add_bad(time_point now, bool failed, bool slow) noexcept {
  auto const t = tick(now);
  auto& b = buckets_[t % buckets];
  if (!reached(t, b.tick)) return;  // a whole window late
  if (b.tick != t) {
    b.tick = t;
    b.other = b.failed = b.slow = 0;
  }
  ++b.other;
  b.failed += failed ? 1 : 0;
  b.slow += slow ? 1 : 0;
}

breaker_counts breaker_window::count(time_point now) const noexcept {
  auto const t = tick(now);
  breaker_counts out;
  // Unsigned, so that a tick from the future (another thread's clock reading) is not in the window either
  // way.
  for (auto const& row : good_) {
    for (auto const& word : row) {
      auto const good = read(word);
      if (t - tick_of(good) < buckets) out.calls += good & count_mask;
    }
  }
  for (auto const& b : buckets_) {
    if (t - b.tick >= buckets) continue;
    out.calls += b.other;
    out.failed += b.failed;
    out.slow += b.slow;
  }
  return out;
}

}  // namespace redoubt
