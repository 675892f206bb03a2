// SPDX-License-Identifier: BSL-1.0
//
// Slots and who waits for them. First come, first served among equals; a slot that becomes free goes straight
// to a waiter, so a newcomer can never overtake, and a waiter that has gone is not in the queue any more, so
// it can never eat a slot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <redoubt/core/ring.hpp>
#include <redoubt/core/striped_counter.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// Two allowances on one pool: what replaces a failed answer may be held down, or left alone, apart from the
/// rest.
enum class slot_use : std::uint8_t {
  normal,    ///< Ordinary work.
  fallback,  ///< Work done because something else failed: loads while the cache is down.
};

/// Who is served first, and who is turned away first.
enum class slot_priority : std::uint8_t { low, normal, high };

/// What a slot is asked for.
struct slot_class {
  slot_use use = slot_use::normal;
  slot_priority priority = slot_priority::normal;

  friend bool operator==(slot_class, slot_class) = default;
};

/// For whom the slots are.
struct bulkhead_shares {
  /// Of the slots, how many ordinary work may use. Default: all. Range 1 .. 65536.
  std::optional<std::uint32_t> normal = std::nullopt;
  /// Of the slots, how many fallback work may use. Default: all. Range 1 .. 65536.
  std::optional<std::uint32_t> fallback = std::nullopt;
  /// A request of low priority gets a slot only while fewer than this share of them is used: the rest is kept
  /// for what matters more. Never more than `normal_priority`. Default 1. Range above 0 .. 1.
  double low_priority = 1.0;
  /// The same for normal priority. High priority may use all. Default 1. Range above 0 .. 1.
  double normal_priority = 1.0;
};

/// How many slots there are, and for whom. May change at any time.
struct bulkhead_limits {
  /// How many may be used at once. Default 8. Range 1 .. 65536.
  std::uint32_t slots = 8;
  /// How many may wait for one; everybody else is refused at once. Default 64. Range 0 .. 65536.
  std::uint32_t waiters = 64;
  bulkhead_shares shares{};

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of a `bulkhead_queue`, and of the bulkhead around it.
struct bulkhead_snapshot {
  std::uint32_t slots = 0;      ///< How many may be used at once.
  std::uint32_t used = 0;       ///< Slots in use now; above `slots` while a lowered limit drains.
  std::uint32_t fallback = 0;   ///< Of these: by fallback work.
  std::uint32_t waiting = 0;    ///< Waiters now.
  std::uint64_t granted = 0;    ///< Slots given so far, waited for or not.
  std::uint64_t refused = 0;    ///< Refused at once: all slots and all waiting places were taken.
  std::uint64_t expired = 0;    ///< Refused because the deadline passed: while waiting, or before.
  std::uint64_t withdrawn = 0;  ///< Left the queue: their caller cancelled, or the bulkhead or their context
                                ///< went away.
};

/// Sans-io machine of a bulkhead. Copyable value.
class bulkhead_queue {
 public:
  /// Names a waiter; never used twice.
  using waiter_id = std::uint64_t;

  /// What became of a request for a slot.
  struct entry {
    enum class kind : std::uint8_t {
      granted,  ///< The slot is taken; `leave()` gives it back.
      queued,   ///< Wait; `leave()`, `on_time()` or `withdraw()` of `id` ends it.
      full,     ///< No slot and no place to wait.
      expired,  ///< The deadline had passed already.
    } what = kind::full;
    waiter_id id = 0;
  };

  /// The limits have to be valid.
  explicit bulkhead_queue(bulkhead_limits const& limits) noexcept { set(limits); }
  /// `slots` >= 1 may be used at once, by anybody; at most `waiters` may wait.
  bulkhead_queue(std::uint32_t slots, std::uint32_t waiters) noexcept
      : bulkhead_queue(bulkhead_limits{slots, waiters, {}}) {}

  // --- any thread, lock-free ---

  /// Takes a slot when one is free and nobody waits. False: nothing happened, ask one at a time.
  [[nodiscard]] bool enter_at_once(slot_class what) noexcept;
  /// Gives a slot back when nobody waits and nobody has called `abandon()`. False: nothing happened, call
  /// `leave()`.
  [[nodiscard]] bool leave_at_once(slot_class what) noexcept;

  // --- one at a time ---

  /// Asks for a slot, to be had by `by` at the latest.
  [[nodiscard]] entry enter(time_point now, deadline by, slot_class what = {});
  /// True when the next request of this class is granted at once, unless another thread takes the slot.
  [[nodiscard]] bool has_free_slot(slot_class what = {}) const noexcept;
  /// Asks for a slot without waiting: `granted` or `full`.
  [[nodiscard]] entry::kind try_enter(slot_class what = {});
  /// Gives a slot back. The waiter that has it now, if there is one; its own class is what it asked for.
  [[nodiscard]] std::optional<waiter_id> leave(slot_class what = {});
  /// Takes a waiter out. False when it does not wait (any more): then nothing happens.
  bool withdraw(waiter_id id);
  /// Takes everybody out whose deadline has passed, and adds them to `expired`.
  void on_time(time_point now, ring<waiter_id>& expired);
  /// New limits. Never waits: slots in use above a lowered limit drain. Whoever gets a slot now is added to
  /// `granted`.
  void resize(bulkhead_limits const& limits, ring<waiter_id>& granted);
  /// There will be no more requests: from now on every slot comes back by `leave()`, so that whoever gives
  /// the last one back knows it. Nobody may wait any more. True when slots are in use.
  [[nodiscard]] bool abandon() noexcept;
  /// True when it was abandoned and the last slot has come back.
  [[nodiscard]] bool over() const noexcept;
  /// When `on_time()` wants to be called; `time_point::max()` for never.
  [[nodiscard]] time_point next_wakeup() const noexcept;
  [[nodiscard]] bulkhead_limits const& limits() const noexcept { return limits_; }
  [[nodiscard]] bulkhead_snapshot snapshot() const noexcept;

  /// Asserts what must always hold: bounds kept, and nobody waits who could have a slot.
  void check() const noexcept;

 private:
  using queue_of_equals = std::map<waiter_id, deadline>;  // in the order of arrival, because ids grow

  // The word: used slots of either use in 24 bits each, and two flags.
  static constexpr std::uint64_t count_mask = 0xff'ffff;
  static constexpr unsigned fallback_shift = 24;
  static constexpr std::uint64_t abandoned = std::uint64_t{1} << 62;
  static constexpr std::uint64_t somebody_waits = std::uint64_t{1} << 63;

  static std::uint64_t one(slot_class what) noexcept {
    return what.use == slot_use::normal ? 1 : std::uint64_t{1} << fallback_shift;
  }
  static std::uint32_t used_by(std::uint64_t word, slot_use use) noexcept {
    return static_cast<std::uint32_t>((use == slot_use::normal ? word : word >> fallback_shift) & count_mask);
  }
  static std::uint32_t used(std::uint64_t word) noexcept {
    return used_by(word, slot_use::normal) + used_by(word, slot_use::fallback);
  }
  template <class T>
  static std::atomic_ref<T> shared(T const& value) noexcept {
    return std::atomic_ref<T>(const_cast<T&>(value));
  }
  template <class T>
  static T load(T const& value) noexcept {
    return shared(value).load(std::memory_order_relaxed);
  }
  static void add(std::uint64_t& counter) noexcept {
    shared(counter).fetch_add(1, std::memory_order_relaxed);
  }

  void set(bulkhead_limits const& limits) noexcept;
  [[nodiscard]] bool fits(std::uint64_t word, slot_class what) const noexcept {
    return used(word) < load(ceiling_[static_cast<std::size_t>(what.priority)]) &&
           used_by(word, what.use) < load(allowance_[static_cast<std::size_t>(what.use)]);
  }
  [[nodiscard]] bool take(slot_class what) noexcept;
  [[nodiscard]] std::optional<waiter_id> hand_over(std::uint64_t given_back);
  [[nodiscard]] std::optional<slot_class> next_for(std::uint64_t word) const noexcept;
  [[nodiscard]] std::uint32_t waiting() const noexcept;
  void mark() noexcept;

  // Used slots of both uses, whether anybody waits, and whether it was abandoned: changed together, so that
  // nobody can take or give back a slot past a waiter, or past the end.
  // On a cache line of its own: what is only read must not wait for those who write.
  [[maybe_unused]] std::array<std::byte, detail::cache_line> before_{};
  std::uint64_t word_ = 0;
  [[maybe_unused]] std::array<std::byte, detail::cache_line> after_{};
  std::array<std::uint32_t, 3> ceiling_{};    // by priority, rising, for all used slots
  std::array<std::uint32_t, 2> allowance_{};  // by use
  bulkhead_snapshot counts_;                  // without this one, which every call raises:
  detail::striped_counter granted_;
  bulkhead_limits limits_;
  waiter_id next_ = 1;
  std::array<queue_of_equals, 6> lines_;  // by priority, then use
};

// What every call goes through is here, so that it needs no call of a function.

inline bool bulkhead_queue::enter_at_once(slot_class what) noexcept {
  auto word = load(word_);
  while ((word & somebody_waits) == 0 && fits(word, what)) {
    if (shared(word_).compare_exchange_weak(word, word + one(what), std::memory_order_acq_rel)) {
      granted_.add();
      return true;
    }
  }
  return false;
}

inline bool bulkhead_queue::leave_at_once(slot_class what) noexcept {
  auto word = load(word_);
  while ((word & (somebody_waits | abandoned)) == 0) {
    // After this nothing may be touched: when the last slot is back, its owner may be gone.
    if (shared(word_).compare_exchange_weak(word, word - one(what), std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace redoubt
