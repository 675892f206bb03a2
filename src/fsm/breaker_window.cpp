// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_window.hpp>

#include <algorithm>
#include <atomic>

namespace redoubt {
namespace {

using atomic_word = std::atomic_ref<std::uint64_t>;
constexpr std::uint64_t count_mask = 0xffff'ffff;

std::uint64_t word(std::uint32_t tick, std::uint64_t count) noexcept {
  return std::uint64_t{tick} << 32 | count;
}
/// True when `tick` is `at` or later; ticks wrap.
bool reached(std::uint32_t tick, std::uint32_t at) noexcept {
  return static_cast<std::int32_t>(tick - at) >= 0;
}
std::uint32_t tick_of(std::uint64_t w) noexcept { return static_cast<std::uint32_t>(w >> 32); }

/// A word read while others write it.
std::uint64_t read(std::uint64_t const& w) noexcept {
  return atomic_word(const_cast<std::uint64_t&>(w)).load(std::memory_order_relaxed);
}

}  // namespace

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

void breaker_window::reset(duration length) noexcept {
  auto const nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(2, length.count() / buckets));
  atomic_word(buckets_per_ns_).store(~std::uint64_t{0} / nanoseconds + 1, std::memory_order_relaxed);
  for (auto& b : buckets_) {
    // Tick 0 is far in the past for every clock that has run for a window's length.
    atomic_word(b.good).store(0, std::memory_order_relaxed);
    b.tick = b.other = b.failed = b.slow = 0;
  }
}

std::uint32_t breaker_window::tick(time_point now) const noexcept {
  __extension__ using wide = unsigned __int128;
  auto const since = static_cast<std::uint64_t>(now.time_since_epoch().count());
  return static_cast<std::uint32_t>(static_cast<wide>(since) * read(buckets_per_ns_) >> 64);
}

void breaker_window::add_good(time_point now) noexcept {
  auto const t = tick(now);
  atomic_word good(buckets_[t % buckets].good);
  auto seen = good.load(std::memory_order_relaxed);
  for (;;) {
    if (tick_of(seen) == t) {
      good.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (!reached(t, tick_of(seen))) return;  // a whole window late
    if (good.compare_exchange_weak(seen, word(t, 1), std::memory_order_relaxed)) return;
  }
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
