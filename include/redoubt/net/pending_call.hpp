// SPDX-License-Identifier: BSL-1.0
//
// One call between its initiation and its completion: the bytes to send, the limits, and what came of it.
// Knows nothing of Asio; the handler lives in a class derived from it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/call_id.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/wire_bytes.hpp>

namespace boost::asio {
class io_context;
}

namespace redoubt::detail {

/// A call under way. Owned by exactly one list at a time; ends by `deliver()` or by `discard()`.
class pending_call {
 public:
  pending_call() = default;
  pending_call(pending_call const&) = delete;
  pending_call& operator=(pending_call const&) = delete;

  /// Completes the call from its outcome and frees it. Called once, outside the connection, on the client's
  /// executor; brings the handler to its own.
  virtual void deliver() = 0;
  /// The context in which the handler is to run, when that is another one than the client's. Null: what
  /// `deliver()` does is all that is known.
  [[nodiscard]] virtual boost::asio::io_context* host() const noexcept { return nullptr; }
  /// `deliver()` for whoever is in that context already.
  virtual void complete() { deliver(); }
  /// Frees it without completing: the context is being destroyed.
  virtual void discard() noexcept = 0;
  /// The server has answered with `error`. True when the call must be sent once more instead, as what now
  /// stands in `bytes`. Called on the connection's strand.
  virtual bool again() { return false; }

  pending_call* next = nullptr;

  // What to do.
  wire_bytes bytes;  ///< The encoded command starts at `offset`.
  std::size_t offset = 0;
  std::uint32_t replies = 1;
  bool own_budget = false;
  bool runs_script = false;  ///< An error may come after the script has written: see `effect_inside_script`.
  command_name name;
  time_point started{};
  deadline by{};
  std::uint64_t cancel_key = 0;  ///< 0: cannot be cancelled.

  // Where it is.
  std::uint32_t lane = 0;  ///< Number of its connection.
  call_id id{};
  static constexpr time_point never = time_point::min();
  time_point staged = never;      ///< When it was given to the connection to be written.
  time_point resent = never;      ///< When it was found that it has to be sent once more.
  std::size_t charged_bytes = 0;  ///< Still counted against the bound on queued bytes.

  // What came of it.
  reply value;                ///< With one expected reply.
  std::vector<reply> values;  ///< With several.
  std::optional<failure> error;

  [[nodiscard]] std::string_view wire() const noexcept { return bytes.view().substr(offset); }

 protected:
  ~pending_call() = default;
};

/// The call queue knows a call by this number.
[[nodiscard]] inline std::uint64_t tag_of(pending_call* call) noexcept {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(call));
}
[[nodiscard]] inline pending_call* call_of(std::uint64_t tag) noexcept {
  return reinterpret_cast<pending_call*>(static_cast<std::uintptr_t>(tag));
}

/// A list of calls that owns them.
class call_list {
 public:
  call_list() noexcept = default;
  call_list(call_list&& other) noexcept
      : head_(std::exchange(other.head_, nullptr)),
        tail_(std::exchange(other.tail_, nullptr)) {}
  call_list& operator=(call_list&&) = delete;
  ~call_list() {
    while (auto* call = pop()) call->discard();
  }

  void push(pending_call* call) noexcept {
    call->next = nullptr;
    (tail_ ? tail_->next : head_) = call;
    tail_ = call;
  }
  /// Puts the other's calls behind its own.
  void append(call_list other) noexcept {
    if (other.empty()) return;
    (tail_ ? tail_->next : head_) = std::exchange(other.head_, nullptr);
    tail_ = std::exchange(other.tail_, nullptr);
  }
  [[nodiscard]] pending_call* pop() noexcept {
    auto* call = head_;
    if (call) {
      head_ = call->next;
      if (!head_) tail_ = nullptr;
    }
    return call;
  }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  /// The oldest; null when there is none.
  [[nodiscard]] pending_call const* front() const noexcept { return head_; }

 private:
  pending_call* head_ = nullptr;
  pending_call* tail_ = nullptr;
};

/// Where any thread leaves calls for the connection: a lock-free stack of many producers that its one
/// consumer takes as a whole. One wake-up serves every call that arrives before the consumer looks.
class call_inbox {
 public:
  ~call_inbox() {
    for (auto* call = head_.exchange(nullptr, std::memory_order_acquire); call != nullptr;) {
      auto* next = call->next;
      call->discard();
      call = next;
    }
  }

  /// True when the inbox was empty: the consumer must be woken.
  [[nodiscard]] bool push(pending_call* call) noexcept {
    auto* head = head_.load(std::memory_order_relaxed);
    do {
      call->next = head;
    } while (!head_.compare_exchange_weak(head, call, std::memory_order_release, std::memory_order_relaxed));
    return head == nullptr;
  }

  /// Everything that was pushed, oldest first.
  [[nodiscard]] call_list take() noexcept {
    pending_call* oldest = nullptr;
    for (auto* call = head_.exchange(nullptr, std::memory_order_acquire); call != nullptr;) {
      auto* next = call->next;
      call->next = oldest;
      oldest = call;
      call = next;
    }
    call_list out;
    while (oldest != nullptr) {
      auto* next = oldest->next;
      out.push(oldest);
      oldest = next;
    }
    return out;
  }

 private:
  std::atomic<pending_call*> head_ = nullptr;
};

/// The client-wide bounds on calls and queued bytes; shared by all connections and asked by the calling
/// thread, so that a full client answers without waking anybody.
class load_gate {
 public:
  load_gate(std::size_t calls_max, std::size_t bytes_max) noexcept
      : calls_max_(calls_max),
        bytes_max_(bytes_max) {}

  /// Counts a call in. False, and nothing counted, when a bound would be passed.
  [[nodiscard]] bool enter(std::size_t bytes) noexcept {
    auto const before = load_.fetch_add(one_call + bytes, std::memory_order_relaxed);
    if (before / one_call < calls_max_ && before % one_call + bytes <= bytes_max_) return true;
    load_.fetch_sub(one_call + bytes, std::memory_order_relaxed);
    return false;
  }
  /// Counts bytes in that must not be refused: the second command of a call that was let in.
  void queue(std::size_t bytes) noexcept { load_.fetch_add(bytes, std::memory_order_relaxed); }
  void leave(std::size_t calls) noexcept { load_.fetch_sub(one_call * calls, std::memory_order_relaxed); }
  void unqueue(std::size_t bytes) noexcept { load_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t calls() const noexcept {
    return static_cast<std::size_t>(load_.load(std::memory_order_relaxed) / one_call);
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(load_.load(std::memory_order_relaxed) % one_call);
  }
  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }

 private:
  // Calls and bytes in one word, so that entering costs one atomic operation. Bytes have 40 bits (the bound
  // is at most 2^32, and a command that finds the gate full is counted for a moment), calls the 24 above them
  // (at most 10^6).
  static constexpr std::uint64_t one_call = std::uint64_t{1} << 40;

  std::size_t const calls_max_;
  std::size_t const bytes_max_;
  std::atomic<std::uint64_t> load_ = 0;
};

}  // namespace redoubt::detail
