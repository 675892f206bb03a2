// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_window.hpp>

#include <algorithm>
#include <atomic>

namespace redoubt {

breaker_window& breaker_window::operator=(breaker_window const& other) noexcept {
  if (this == &other) return *this;
  buckets_per_ns_ = other.buckets_per_ns_;
  for (std::size_t i = 0; i < buckets; ++i) {
    auto copy = other.buckets_[i];
    copy.good = read(other.buckets_[i].good);
    buckets_[i] = copy;
  }
  return *this;
}

std::uint64_t breaker_window::reset(duration length) noexcept {
  auto const nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(2, length.count() / buckets));
  atomic_word(buckets_per_ns_).store(~std::uint64_t{0} / nanoseconds + 1, std::memory_order_relaxed);
  std::uint64_t let_go = 0;
  for (auto& b : buckets_) {
    // Tick 0 is far in the past for every clock that has run for a window's length.
    let_go += atomic_word(b.good).exchange(0, std::memory_order_relaxed) & count_mask;
    b.tick = b.other = b.failed = b.slow = 0;
  }
  return let_go;
}

std::uint64_t breaker_window::held() const noexcept {
  std::uint64_t sum = 0;
  for (auto const& b : buckets_) sum += read(b.good) & count_mask;
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
  for (auto const& b : buckets_) {
    // Unsigned, so that a tick from the future (another thread's clock reading) is not in the window either
    // way.
    auto const good = read(b.good);
    if (t - tick_of(good) < buckets) out.calls += good & count_mask;
    if (t - b.tick < buckets) {
      out.calls += b.other;
      out.failed += b.failed;
      out.slow += b.slow;
    }
  }
  return out;
}

}  // namespace redoubt
