// SPDX-License-Identifier: BSL-1.0
//
// Slots and who waits for them. First come, first served; a slot that becomes free goes straight to the first
// waiter, so a newcomer can never overtake, and a waiter that has gone is not in the queue any more, so it
// can never eat a slot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include <redoubt/core/ring.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// Numbers of a `bulkhead_queue`, and of the bulkhead around it.
struct bulkhead_snapshot {
  std::uint32_t slots = 0;      ///< How many may be used at once.
  std::uint32_t used = 0;       ///< Slots in use now.
  std::uint32_t waiting = 0;    ///< Waiters now.
  std::uint64_t granted = 0;    ///< Slots given so far, waited for or not.
  std::uint64_t refused = 0;    ///< Refused at once: all slots and all waiting places were taken.
  std::uint64_t expired = 0;    ///< Refused because the deadline passed: while waiting, or before.
  std::uint64_t withdrawn = 0;  ///< Left the queue because their caller cancelled, or the bulkhead went away.
};

/// Sans-io machine of a bulkhead. Value type, not thread-safe.
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

  /// `slots` >= 1 may be used at once; at most `waiters` may wait.
  bulkhead_queue(std::uint32_t slots, std::uint32_t waiters) noexcept : waiters_(waiters) {
    now_.slots = slots;
  }

  /// Asks for a slot, to be had by `by` at the latest.
  [[nodiscard]] entry enter(time_point now, deadline by);

  /// True when the next request is granted at once.
  [[nodiscard]] bool has_free_slot() const noexcept { return now_.used < now_.slots; }

  /// Asks for a slot without waiting: `granted` or `full`.
  [[nodiscard]] entry::kind try_enter();

  /// Gives a slot back. The waiter that has it now, if there is one.
  [[nodiscard]] std::optional<waiter_id> leave();

  /// Takes a waiter out. False when it does not wait (any more): then nothing happens.
  bool withdraw(waiter_id id);

  /// Takes everybody out whose deadline has passed, and adds them to `expired`.
  void on_time(time_point now, ring<waiter_id>& expired);

  /// When `on_time()` wants to be called; `time_point::max()` for never.
  [[nodiscard]] time_point next_wakeup() const noexcept;

  [[nodiscard]] bulkhead_snapshot snapshot() const noexcept;

  /// Asserts what must always hold: bounds kept, and nobody waits while a slot is free.
  void check() const noexcept;

 private:
  std::uint32_t waiters_;
  bulkhead_snapshot now_;
  waiter_id next_ = 1;
  std::map<waiter_id, deadline> queue_;  // in the order of arrival, because ids grow
};

}  // namespace redoubt
