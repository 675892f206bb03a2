// SPDX-License-Identifier: BSL-1.0
//
// The life of a call on one connection:
//
//     submit -> waiting -> staged -> sent -> answered
//                  |          \________/
//               removed       abandoned: the caller has its answer, a tombstone still owes the server's
//
// Replies match first in, first out. A call that ends while waiting is removed and never written: effect
// none. One that ends after it was staged completes at once with effect unknown and leaves a tombstone; its
// late reply is dropped. The write gate: once a reply is overdue nothing more is staged until a byte arrives,
// so that calls made during a pause end with effect none and are never executed later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <redoubt/core/error.hpp>
#include <redoubt/core/ring.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/call_id.hpp>
#include <redoubt/fsm/deadline_wheel.hpp>

namespace redoubt {

/// Bounds and times of a `call_queue`.
struct call_queue_options {
  /// Limit from submission until the connection is ready. Default 100 ms.
  duration connect_timeout = std::chrono::milliseconds(100);
  /// Limit of one attempt on a ready connection. Default 100 ms.
  duration attempt_timeout = std::chrono::milliseconds(100);
  /// Longest silence while a reply is owed. Default 1 s.
  duration stall_limit = std::chrono::seconds(1);
  /// Most replies that may be owed to callers who have gone. Default 4096.
  std::size_t tombstones = 4096;
};

/// What the owner wants done.
struct call_request {
  /// The owner's own word for the call; handed back in every output.
  std::uint64_t tag = 0;
  /// Encoded size.
  std::size_t bytes = 0;
  /// Replies it is answered with; at least 1.
  std::uint32_t replies = 1;
  /// The end of the call, whatever happens.
  deadline by{};
  /// True when the caller gave a budget: then only `by` counts, not connect_timeout and attempt_timeout.
  bool own_budget = false;
};

/// A call that has ended without its reply.
struct ended_call {
  std::uint64_t tag = 0;
  redoubt::effect effect = redoubt::effect::none;
  redoubt::phase phase = redoubt::phase::queue;
  /// Since when it is in this phase, for one that was staged: staged, or written to its end.
  time_point since{};

  /// When it was written to its end, if it was.
  [[nodiscard]] std::optional<time_point> written() const noexcept {
    if (phase != redoubt::phase::read) return std::nullopt;
    return since;
  }
};

/// Where a reply belongs.
struct matched_reply {
  enum class kind : std::uint8_t {
    answer,      ///< It belongs to the call `tag`.
    discarded,   ///< Its call has ended; drop it.
    own,         ///< It answers what the connection itself has asked; see `stage_own`.
    unexpected,  ///< Nobody asked: the stream cannot be trusted any more.
  } what = kind::unexpected;
  std::uint64_t tag = 0;
  /// True with the last reply of the call (or of the tombstone).
  bool last = false;
  /// When the call's command was written to its end, or staged when that is not known yet.
  time_point since{};
};

/// Numbers for `snapshot()`.
struct call_queue_snapshot {
  std::size_t waiting = 0;
  std::size_t owed = 0;        ///< Calls written or being written whose caller still waits.
  std::size_t tombstones = 0;  ///< Calls written whose caller has gone.
  std::size_t waiting_bytes = 0;
  std::uint64_t discarded_replies = 0;
  std::uint64_t abandoned = 0;  ///< Calls that ended after they were staged, without their reply.
};

/// See the head of this file. Copyable; no clock, no callback. Internal tier: may change in any version.
class call_queue {
 public:
  explicit call_queue(call_queue_options options = {});

  /// Adds a call at the end. `by` must lie after `now`.
  call_id submit(call_request const& request, time_point now);

  /// The connection is ready: attempts start to count for every waiting call.
  void on_ready(time_point now);

  /// Moves waiting calls to the batch that is to be written now, at most `bytes_max` bytes but at least one
  /// call, and appends their tags to `batch`. Nothing while a batch is being written, while the gate is
  /// closed, or before ready. A call whose time is up already stays where it is, for `on_time` to end: a late
  /// timer lets nothing out.
  void take_batch(std::size_t bytes_max, time_point now, std::vector<std::uint64_t>& batch);

  /// Since when nothing has arrived on a ready connection that is owed nothing and has nothing to write;
  /// empty for any other.
  [[nodiscard]] std::optional<time_point> idle_since() const noexcept;

  /// A command of the connection's own, of `bytes` and with one reply, is the batch that is to be written
  /// now. Only on an idle connection: `idle_since()` has a value. It keeps the gate and the stall limit like
  /// a call, but is counted nowhere.
  void stage_own(std::size_t bytes, time_point now);

  /// `bytes` more of the batch were handed to the operating system.
  void on_written(std::size_t bytes, time_point now);

  /// Any bytes arrived: a sign of life that opens the gate.
  void on_bytes(time_point now);

  /// One whole reply arrived.
  matched_reply on_reply();

  /// Ends the calls whose time is up. `waiting_phase` is where a call that is not yet staged stands.
  void on_time(time_point now, phase waiting_phase, std::vector<ended_call>& ended);

  /// The caller has gone. Empty when the call has ended already.
  std::optional<ended_call> cancel(call_id id, phase waiting_phase);

  /// The connection is gone: ends every call that was staged or sent and forgets the tombstones. Waiting
  /// calls stay.
  void on_lost(std::vector<ended_call>& ended);

  /// Ends every waiting call.
  void end_waiting(phase waiting_phase, std::vector<ended_call>& ended);

  /// True when nothing may be written because a reply is overdue.
  [[nodiscard]] bool gate_closed(time_point now) const noexcept;

  /// True when more replies are owed to callers who have gone than may be.
  [[nodiscard]] bool crowded() const noexcept { return tombstones() > options_.tombstones; }

  /// True when the connection owes replies, or the rest of a write, for longer than it may, or too many of
  /// them.
  [[nodiscard]] bool stalled(time_point now) const noexcept;

  /// True when a call's time ran out while its command was written in part: the connection is not taking it,
  /// and cannot be used without the rest. (What a caller cancels is written to its end, for the sake of the
  /// calls around it.)
  [[nodiscard]] bool half_written() const noexcept { return half_written_; }

  /// The next time at which something may be due.
  [[nodiscard]] std::optional<time_point> next_wakeup() const noexcept;

  /// No call is waiting, staged or sent by a caller who is still there.
  [[nodiscard]] bool idle() const noexcept { return waiting_count_ == 0 && owed_count_ == 0; }
  /// No reply is owed, to a caller or to a tombstone.
  [[nodiscard]] bool settled() const noexcept { return sent_.empty(); }
  [[nodiscard]] bool has_waiting() const noexcept { return waiting_count_ > 0; }
  /// The call that the next reply belongs to; empty when none is owed or its caller has gone.
  [[nodiscard]] std::optional<std::uint64_t> next_to_answer() const noexcept {
    if (sent_.empty() || sent_.front().owner == none) return std::nullopt;
    return slots_[sent_.front().owner].tag;
  }

  [[nodiscard]] call_queue_snapshot snapshot() const noexcept;
  /// Every call that has not ended, in the order in which replies are due, then in waiting order.
  [[nodiscard]] std::vector<ended_call> live(phase waiting_phase) const;

  /// For tests: false when an invariant does not hold.
  [[nodiscard]] bool check() const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  enum class state : std::uint8_t { free, waiting, owed };

  struct slot {
    std::uint64_t tag = 0;
    std::size_t bytes = 0;
    std::uint32_t replies = 1;
    std::uint32_t generation = 0;
    std::uint32_t previous = none;
    std::uint32_t next = none;
    std::uint64_t order = 0;  ///< Number of its entry among all that were ever staged; when owed.
    deadline by{};
    time_point limit{};  ///< When it ends at the latest; `by`, or earlier because of its stage.
    state where = state::free;
    bool own_budget = false;
  };

  /// One written (or being written) call in reply order. `owner` is `none` for a tombstone.
  struct owed_entry {
    std::uint32_t owner = none;
    std::uint32_t replies = 1;
    std::size_t bytes = 0;
    time_point since{};
    duration patience{};   ///< How long silence is normal while this entry is the next to be answered.
    bool expired = false;  ///< Its call ran out of time, rather than being given up by its caller.
    bool own = false;      ///< The connection's own.
  };

  [[nodiscard]] time_point limit_of(slot const& s, time_point now) const noexcept;
  [[nodiscard]] time_point quiet_since() const noexcept;
  [[nodiscard]] std::optional<time_point> unread_until() const noexcept;
  [[nodiscard]] std::size_t tombstones() const noexcept {
    return sent_.size() - owed_count_ - (own_owed_ ? 1 : 0);
  }
  void arm(std::uint32_t index, time_point now);
  void unlink_waiting(std::uint32_t index) noexcept;
  void release(std::uint32_t index) noexcept;
  ended_call abandon(std::uint32_t index, bool expired) noexcept;
  void pop_answered() noexcept;
  ended_call remove_waiting(std::uint32_t index, phase waiting_phase) noexcept;
  [[nodiscard]] std::size_t position_of(std::uint32_t index) const noexcept;

  call_queue_options options_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t waiting_head_ = none;
  std::uint32_t waiting_tail_ = none;
  std::size_t waiting_count_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::size_t owed_count_ = 0;
  ring<owed_entry> sent_;          // in reply order; the last `staged_` of them are not fully written
  std::uint64_t first_order_ = 0;  // number of the first of them
  std::size_t staged_ = 0;
  std::size_t head_written_ = 0;    // bytes written of the first staged entry
  std::size_t answered_early_ = 0;  // bytes of the batch whose reply came before the write's completion
  deadline_wheel wheel_;
  std::vector<std::uint32_t> due_;  // scratch
  time_point last_byte_ = time_point::min();
  time_point last_written_ = time_point::min();
  bool ready_ = false;
  bool overdue_ = false;
  bool half_written_ = false;
  bool own_owed_ = false;  // one of `sent_` is the connection's own
  std::uint64_t discarded_ = 0;
  std::uint64_t abandoned_ = 0;
};

}  // namespace redoubt
