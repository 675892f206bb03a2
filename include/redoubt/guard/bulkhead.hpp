// SPDX-License-Identifier: BSL-1.0
//
// A bound on how many may do something at once, with a bounded queue in front of it. The walls between the
// compartments of a ship: what floods one does not sink the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/adaptive_limit.hpp>
#include <redoubt/fsm/bulkhead_queue.hpp>

namespace redoubt {

namespace asio = boost::asio;

/// Slots for concurrent work. Thread-safe: any thread may acquire, release, and read. Needs no executor of
/// its own; a permit may outlive it. Whoever waits on a context that is destroyed leaves the queue. As a
/// layer of a stack: `through(db)` of `guard/bulkhead_layer.hpp`.
///
///     bulkhead db{{.name = "db", .slots = 8, .waiters = 64}};
///     auto permit = co_await db.acquire(executor, by);
///     if (!permit) co_return busy(permit.error());
class bulkhead {
  struct core;

 public:
  struct options {
    /// Appears in failures. Default "bulkhead".
    std::string name = "bulkhead";
    /// How many may hold a permit at once. Default 8. Range 1 .. 65536.
    std::uint32_t slots = 8;
    /// How many may wait for one; everybody else is refused at once. Default 64. Range 0 .. 65536.
    std::uint32_t waiters = 64;
    /// The longest wait for a permit, whatever the caller's deadline. Default 1 s. Range 1 ms .. 1 h.
    duration max_wait = std::chrono::seconds(1);
    /// Of the slots: how many each kind of use and each priority may have. Default: all may have all.
    bulkhead_shares shares{};
    /// Finds a limit below `slots` by itself, from how long the work takes. Default empty: off.
    std::optional<adaptive_limit_options> adaptive = std::nullopt;

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  /// One slot, held. Releasing is its destruction or `release()`, on any thread. Movable; a moved-from or
  /// default-constructed permit holds nothing.
  class [[nodiscard]] permit {
   public:
    permit() noexcept = default;
    permit(permit&& other) noexcept : core_(std::exchange(other.core_, nullptr)), what_(other.what_) {}
    permit& operator=(permit&& other) noexcept {
      permit(std::move(other)).swap(*this);
      return *this;
    }
    permit(permit const&) = delete;
    permit& operator=(permit const&) = delete;
    ~permit() { release(); }

    /// Gives the slot back now. Does nothing when none is held.
    void release() noexcept {
      if (core_ != nullptr) give_back(*std::exchange(core_, nullptr), what_);
    }
    /// True while a slot is held.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
    void swap(permit& other) noexcept {
      std::swap(core_, other.core_);
      std::swap(what_, other.what_);
    }

   private:
    friend class bulkhead;
    permit(core& held, slot_class what) noexcept : core_(&held), what_(what) {}
    core* core_ = nullptr;  // lives as long as a slot of it is held, so there is nothing to count
    slot_class what_{};
  };

  bulkhead();
  /// Throws `option_error` when an option is out of range.
  explicit bulkhead(options o);
  /// Everybody who waits is answered with `closed`.
  ~bulkhead();
  bulkhead(bulkhead const&) = delete;
  bulkhead& operator=(bulkhead const&) = delete;

  /// A permit now or a refusal (`bulkhead_full`); never waits, never overtakes somebody who does and could
  /// have it. No lock and no allocation while nobody waits.
  [[nodiscard]] result<permit> try_acquire(slot_class what = {});

  /// A permit when a slot is free and nobody waits, otherwise an empty one, which is not counted as a
  /// refusal. Lock-free.
  [[nodiscard]] permit acquire_at_once(slot_class what = {}) noexcept;

  /// Waits for a permit, until `by` or `max_wait`, whichever comes first. Completion: `void(result<permit>)`,
  /// on the token's executor (`executor` by default, whose context also provides the time), exactly once,
  /// never inside this call.
  ///
  /// Errors, all with effect none: `bulkhead_full` at once when all waiting places are taken, or when no slot
  /// became free in time (then with `elapsed`): both are our own saturation, not a fault of what is
  /// protected; `deadline_exceeded` when `by` had passed before; `cancelled`; `closed` when the bulkhead is
  /// destroyed meanwhile.
  template <class Token = asio::deferred_t>
  auto acquire(asio::any_io_executor executor, deadline by = {}, Token&& token = Token{}) {
    return acquire_as({}, std::move(executor), by, std::forward<Token>(token));
  }
  /// The same for work of another use or priority.
  template <class Token = asio::deferred_t>
  auto acquire_as(slot_class what, asio::any_io_executor executor, deadline by = {},
                  Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<permit>)>(initiate{this, std::move(executor)}, token, by,
                                                             what);
  }

  /// Another number of slots, waiters or shares, effective at once. Never waits: what is in use above a
  /// lowered limit drains. With `adaptive`, `slots` is the new ceiling. Throws `option_error`, and then
  /// changes nothing.
  void resize(bulkhead_limits const& limits);
  /// The limits at this moment; with `adaptive`, the ceiling.
  [[nodiscard]] bulkhead_limits limits() const;
  /// Tells how long a piece of work took that ended at `now`; only looked at with `adaptive`. A layer does it
  /// by itself.
  void observe(duration took, time_point now);
  /// True with `adaptive`.
  [[nodiscard]] bool adaptive() const noexcept { return adaptive_; }
  /// The longest wait for a permit.
  [[nodiscard]] duration max_wait() const noexcept;

  /// Numbers at this moment.
  [[nodiscard]] bulkhead_snapshot snapshot() const;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept;

 private:
  using handler = asio::any_completion_handler<void(result<permit>)>;

  static void give_back(core& from, slot_class what) noexcept;

  struct initiate {
    using executor_type = asio::any_io_executor;
    bulkhead* self;
    executor_type executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
    template <class Handler>
    void operator()(Handler&& h, deadline by, slot_class what) const {
      self->start(executor, by, what, handler(std::forward<Handler>(h)));
    }
  };

  void start(asio::any_io_executor const& executor, deadline by, slot_class what, handler h);

  std::shared_ptr<core> core_;
  bool adaptive_ = false;
};

}  // namespace redoubt
