// SPDX-License-Identifier: BSL-1.0
//
// Who shares which flight: the first who asks for a key starts it, the others wait for its result, each until
// their own deadline. A flight goes on as long as anybody waits for it; when the last one has gone it is
// abandoned and its key is free again.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <redoubt/core/ring.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// Numbers of a `flight_table`, and of the single flight around it. `led + joined == answered + expired +
/// left` when nobody waits.
struct flight_snapshot {
  std::uint32_t flights = 0;    ///< Under way now, the abandoned ones included.
  std::uint32_t abandoned = 0;  ///< Of these: nobody waits for them any more.
  std::uint32_t waiting = 0;    ///< Callers who wait now, the leaders included.
  std::uint64_t led = 0;        ///< Calls that started a flight.
  std::uint64_t joined = 0;     ///< Calls that joined one.
  std::uint64_t refused = 0;    ///< Calls refused because all keys or all followers were taken.
  std::uint64_t answered = 0;   ///< Calls that got the flight's result.
  std::uint64_t expired = 0;    ///< Calls whose deadline passed first.
  std::uint64_t left = 0;       ///< Calls that were cancelled.
};

/// Sans-io machine of a single flight. `Waiter` is a small value that names a caller; it is handed back when
/// the wait ends. Copyable value, not thread-safe. Keys and followers are bounded; nothing is allocated once
/// the bounds were reached before.
template <class Key, class Waiter, class Hash = std::hash<Key>>
class flight_table {
 public:
  using index = std::uint32_t;
  static constexpr index none = ~index{0};

  /// Names a waiter; not used again soon (its place is, with another number).
  struct waiter_id {
    index place = none;
    std::uint32_t number = 0;
  };

  struct entry {
    enum class kind : std::uint8_t {
      led,      ///< Start it; `finish()` ends it.
      joined,   ///< Wait.
      full,     ///< All keys or all followers are taken.
      expired,  ///< The deadline had passed already.
    } what = kind::full;
    index flight = none;
    waiter_id who{};
  };

  /// At most `keys` >= 1 flights at once, and at most `followers` callers that wait for a flight of somebody
  /// else.
  flight_table(std::uint32_t keys, std::uint32_t followers)
      : keys_(keys),
        followers_(followers),
        buckets_(std::bit_ceil(keys), none) {}

  /// Somebody wants the value of `key` by `by`; a new flight ends by `flight_end`, and so do those who wait
  /// for it.
  [[nodiscard]] entry join(Key const& key, time_point now, deadline by, deadline flight_end, Waiter who) {
    if (by.passed(now)) return {entry::kind::expired, none, {}};
    auto const bucket = bucket_of(key);
    for (auto f = buckets_[bucket]; f != none; f = flights_[f].next) {
      if (flights_[f].key == key) return follow(f, by, std::move(who));
    }
    if (counts_.flights >= keys_) return refuse();
    // May throw: before anything is changed.
    Key copy = key;
    auto const f = free_flight();
    (void)free_waiter();
    auto& it = flights_[f];
    it.key = std::move(copy);

    free_flight_ = it.next;
    it.free = false;
    it.end = flight_end;
    it.bucket = bucket;
    it.next = buckets_[bucket];
    it.known = true;
    buckets_[bucket] = f;
    ++counts_.flights;
    ++counts_.led;
    return {entry::kind::led, f, add_waiter(f, by, std::move(who))};
  }

  /// The flight has ended and its key is free. The one who has waited longest is returned, if anybody waits,
  /// the others are added to `others`: so nothing is allocated for a flight that nobody joined.
  std::optional<Waiter> finish(index f, ring<Waiter>& others) {
    auto& it = flights_[f];
    std::optional<Waiter> first;
    while (it.first != none) {
      ++counts_.answered;
      auto who = take(it.first);
      if (it.first == none) {
        first = std::move(who);
      } else {
        others.push_back(std::move(who));
      }
    }
    if (it.known) {
      forget(f);
    } else {
      --counts_.abandoned;
    }
    it.free = true;
    it.next = free_flight_;
    free_flight_ = f;
    --counts_.flights;
    return first;
  }

  /// What became of somebody who leaves.
  struct leaving {
    bool waited = false;     ///< False: it had ended already, nothing happened.
    bool abandoned = false;  ///< It was the last one: stop the flight.
    index flight = none;
    Waiter who{};
  };

  /// A caller does not wait any more.
  leaving leave(waiter_id id) {
    if (id.place >= waiters_.size()) return {};
    auto& w = waiters_[id.place];
    if (w.flight == none || w.number != id.number) return {};
    auto const f = w.flight;
    ++counts_.left;
    auto who = take(id.place);
    return {true, abandon_if_empty(f), f, std::move(who)};
  }

  /// Adds those who wait for `f` and whose deadline has passed to `expired`. True when nobody is left: stop
  /// the flight.
  [[nodiscard]] bool on_time(index f, time_point now, ring<Waiter>& expired) {
    bool some = false;
    for (auto at = flights_[f].first; at != none;) {
      auto const next = waiters_[at].next;
      if (waiters_[at].by.passed(now)) {
        expired.push_back(take(at));
        ++counts_.expired;
        some = true;
      }
      at = next;
    }
    return some && abandon_if_empty(f);
  }

  /// When `on_time()` wants to be called for `f`; `time_point::max()` for never.
  [[nodiscard]] time_point next_wakeup(index f) const noexcept {
    auto out = time_point::max();
    for (auto at = flights_[f].first; at != none; at = waiters_[at].next) {
      out = std::min(out, waiters_[at].by.at());
    }
    return out;
  }

  [[nodiscard]] flight_snapshot snapshot() const noexcept { return counts_; }

  /// Asserts what must always hold.
  void check() const noexcept {
    std::uint32_t flights = 0, waiting = 0, abandoned = 0;
    for (index f = 0; f < flights_.size(); ++f) {
      auto const& it = flights_[f];
      if (it.free) continue;
      ++flights;
      abandoned += it.known ? 0 : 1;
      assert(it.known == (it.first != none));  // it goes on exactly while somebody waits
      for (auto at = it.first; at != none; at = waiters_[at].next) {
        assert(waiters_[at].flight == f);
        ++waiting;
      }
    }
    assert(flights == counts_.flights && flights <= keys_);
    assert(waiting == counts_.waiting && waiting <= keys_ + followers_);
    assert(abandoned == counts_.abandoned);
    assert(counts_.led + counts_.joined == counts_.answered + counts_.expired + counts_.left + waiting);
    (void)flights, (void)waiting, (void)abandoned;
  }

 private:
  struct flight {
    Key key{};
    deadline end{};
    index bucket = 0;    // kept, so that the key's hash is asked for once
    index next = none;   // in its bucket, or in the list of free places
    index first = none;  // who waits
    bool known = false;  // found by its key
    bool free = true;
  };
  struct waiter {
    deadline by{};
    Waiter who{};
    index flight = none;
    index next = none, previous = none;  // in its flight; `next` in the list of free places
    std::uint32_t number = 0;
  };

  [[nodiscard]] index bucket_of(Key const& key) const {
    // Multiplied, because std::hash of an integer is often the integer itself.
    auto const mixed = static_cast<std::uint64_t>(Hash{}(key)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<index>(mixed >> 32) & static_cast<index>(buckets_.size() - 1);
  }

  entry refuse() {
    ++counts_.refused;
    return {entry::kind::full, none, {}};
  }

  entry follow(index f, deadline by, Waiter who) {
    if (counts_.waiting - (counts_.flights - counts_.abandoned) >= followers_) return refuse();
    (void)free_waiter();  // may throw: before anything is changed
    ++counts_.joined;
    return {entry::kind::joined, f, add_waiter(f, by, std::move(who))};
  }

  // The first free place, which stays in its list.
  index free_flight() {
    if (free_flight_ != none) return free_flight_;
    flights_.emplace_back();
    return free_flight_ = static_cast<index>(flights_.size() - 1);
  }
  index free_waiter() {
    if (free_waiter_ != none) return free_waiter_;
    waiters_.emplace_back();
    return free_waiter_ = static_cast<index>(waiters_.size() - 1);
  }

  waiter_id add_waiter(index f, deadline by, Waiter who) {
    auto const at = free_waiter();
    auto& w = waiters_[at];
    free_waiter_ = w.next;
    auto& first = flights_[f].first;
    w.by = earlier(by, flights_[f].end);
    w.who = std::move(who);
    w.flight = f;
    w.next = first;
    w.previous = none;
    if (first != none) waiters_[first].previous = at;
    first = at;
    ++counts_.waiting;
    return {at, w.number};
  }

  Waiter take(index at) {
    auto& w = waiters_[at];
    if (w.previous != none) {
      waiters_[w.previous].next = w.next;
    } else {
      flights_[w.flight].first = w.next;
    }
    if (w.next != none) waiters_[w.next].previous = w.previous;
    w.flight = none;
    ++w.number;
    w.next = free_waiter_;
    free_waiter_ = at;
    --counts_.waiting;
    return std::exchange(w.who, Waiter{});
  }

  bool abandon_if_empty(index f) {
    if (flights_[f].first != none) return false;
    forget(f);
    ++counts_.abandoned;
    return true;
  }

  void forget(index f) {
    auto* at = &buckets_[flights_[f].bucket];
    while (*at != f) at = &flights_[*at].next;
    *at = flights_[f].next;
    flights_[f].known = false;
  }

  std::uint32_t keys_;
  std::uint32_t followers_;
  std::vector<index> buckets_;
  std::vector<flight> flights_;
  std::vector<waiter> waiters_;
  index free_flight_ = none;
  index free_waiter_ = none;
  flight_snapshot counts_;
};

}  // namespace redoubt
