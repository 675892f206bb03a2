// SPDX-License-Identifier: BSL-1.0
//
// A bound on how many may do something at once, with a bounded queue in front of it. The walls between the
// compartments of a ship: what floods one does not sink the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/bulkhead_queue.hpp>

namespace redoubt {

namespace asio = boost::asio;

/// Slots for concurrent work. Thread-safe: any thread may acquire, release, and read. Needs no executor of
/// its own; a permit may outlive it.
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

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  /// One slot, held. Releasing is its destruction or `release()`, on any thread. Movable; a moved-from or
  /// default-constructed permit holds nothing.
  class [[nodiscard]] permit {
   public:
    permit() noexcept = default;
    permit(permit&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    permit& operator=(permit&& other) noexcept {
      permit(std::move(other)).swap(*this);
      return *this;
    }
    permit(permit const&) = delete;
    permit& operator=(permit const&) = delete;
    ~permit() { release(); }

    /// Gives the slot back now. Does nothing when none is held.
    void release() noexcept;
    /// True while a slot is held.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
    void swap(permit& other) noexcept { core_.swap(other.core_); }

   private:
    friend class bulkhead;
    explicit permit(std::shared_ptr<core> held) noexcept : core_(std::move(held)) {}
    std::shared_ptr<core> core_;
  };

  bulkhead();
  /// Throws `option_error` when an option is out of range.
  explicit bulkhead(options o);
  /// Everybody who waits is answered with `closed`.
  ~bulkhead();
  bulkhead(bulkhead const&) = delete;
  bulkhead& operator=(bulkhead const&) = delete;

  /// A permit now or a refusal (`bulkhead_full`); never waits, never overtakes somebody who does.
  [[nodiscard]] result<permit> try_acquire();

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
    return asio::async_initiate<Token, void(result<permit>)>(initiate{this, std::move(executor)}, token, by);
  }

  /// Numbers at this moment.
  [[nodiscard]] bulkhead_snapshot snapshot() const;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept;

 private:
  using handler = asio::any_completion_handler<void(result<permit>)>;

  struct initiate {
    using executor_type = asio::any_io_executor;
    bulkhead* self;
    executor_type executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
    template <class Handler>
    void operator()(Handler&& h, deadline by) const {
      self->start(executor, by, handler(std::forward<Handler>(h)));
    }
  };

  void start(asio::any_io_executor const& executor, deadline by, handler h);

  std::shared_ptr<core> core_;
};

}  // namespace redoubt
