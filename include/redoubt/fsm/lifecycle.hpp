// SPDX-License-Identifier: BSL-1.0
//
// The states of one connection, from nothing to ready and back:
//
//     idle -demand-> resolving -> connecting -> securing -> handshaking -> ready
//      ^                 \____________|___________|___________/              |
//      |                        refused or failed                            | lost, stalled, retired
//      +--- backing_off <-------------+                                      |
//      +<--------------------------------------------------------------------+   (a waiting call demands the
//      next attempt at once)
//
// Refused and failed attempts back off; meanwhile calls are rejected at once. A silent server is not a
// refused one: both handshakes (TLS, where it is asked for, and Redis' own) stay parked up to the stall
// limit, so that the first byte after a pause makes the connection ready. Every attempt has an epoch; results
// of an older epoch are ignored. Connections are made on demand, so an unused client does nothing at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/backoff.hpp>
#include <redoubt/fsm/link_state.hpp>

namespace redoubt {

/// Times of a `lifecycle`.
struct lifecycle_options {
  /// Limit of name look-up and connecting together. Default 100 ms.
  duration connect_timeout = std::chrono::milliseconds(100);
  /// Limit of a silent handshake, of TLS or of Redis. Default 1 s.
  duration stall_limit = std::chrono::seconds(1);
  /// Pause after a refused or failed connection: full jitter. Default base 10 ms, cap 250 ms.
  backoff_options reconnect{};
  /// Pause after the server refused the handshake (wrong password, too many clients) or one side does not
  /// trust the other's certificate, and up to as much again. Default 500 ms.
  duration refused_pause = std::chrono::milliseconds(500);
  /// A TLS handshake comes before Redis' own. Default false.
  bool secure = false;
};

/// What the driver must do next.
struct link_action {
  enum class kind : std::uint8_t {
    drop,          ///< Close the socket of every older epoch.
    resolve,       ///< Look the name up.
    connect,       ///< Connect to one of the addresses, by `until`.
    secure,        ///< Make the TLS handshake.
    greet,         ///< Send the handshake.
    open,          ///< Calls may be written.
    fail_waiting,  ///< End every waiting call with `lifecycle::cause()`.
  } what = kind::drop;
  std::uint64_t epoch = 0;
  time_point until{};  ///< With `connect`.
};

/// At most four actions, in order.
class link_actions {
 public:
  void push(link_action action) noexcept { items_[size_++] = action; }
  [[nodiscard]] link_action const* begin() const noexcept { return items_.data(); }
  [[nodiscard]] link_action const* end() const noexcept { return items_.data() + size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
  std::array<link_action, 4> items_{};
  std::size_t size_ = 0;
};

/// Numbers for `snapshot()`.
struct lifecycle_snapshot {
  link_state state = link_state::idle;
  std::uint64_t attempts = 0;  ///< Connection attempts started.
  std::uint64_t readied = 0;   ///< Attempts that ended ready.
  std::uint64_t failed = 0;    ///< Attempts that were refused, failed or ran into their limit.
  std::uint64_t lost = 0;      ///< Ready connections that ended, for whatever reason.
  std::uint64_t retired = 0;   ///< Of these, given up by us because they lead to a read-only server.
};

/// See the head of this file. Copyable; no clock. Internal tier: may change in any version.
class lifecycle {
 public:
  lifecycle(lifecycle_options options, std::uint64_t seed);

  /// A call waits for a connection.
  link_actions demand(time_point now);

  /// The name has an address.
  link_actions on_resolved(std::uint64_t epoch, time_point now);
  /// Look-up, connect or TLS handshake failed. `why` needs code, effect and text only.
  link_actions on_attempt_failed(std::uint64_t epoch, failure why, time_point now);
  link_actions on_connected(std::uint64_t epoch, time_point now);
  /// The TLS handshake succeeded.
  link_actions on_secured(std::uint64_t epoch, time_point now);
  /// The handshake succeeded.
  link_actions on_greeted(std::uint64_t epoch, time_point now);
  /// The server refused the handshake, or, with `errc::tls_untrusted`, our certificate.
  link_actions on_refused(std::uint64_t epoch, failure why, time_point now);
  /// The connection ended. `wanted`: calls wait for one.
  link_actions on_lost(std::uint64_t epoch, failure why, bool wanted, time_point now);
  /// A call was answered: the connection is worth something, the next loss starts with a fresh backoff.
  void on_answer() noexcept {
    if (unproven_losses_ == 0) return;
    unproven_losses_ = 0;
    reconnect_.reset();
  }

  /// The connection leads to a server that refuses writes as a replica. True when it should be given up now;
  /// at most once per backoff step, so that a target that is meant to be read-only causes no reconnect storm.
  bool should_retire(time_point now);
  link_actions retire(bool wanted, time_point now);

  link_actions on_time(bool wanted, time_point now);
  [[nodiscard]] std::optional<time_point> next_wakeup() const noexcept;

  link_actions close();

  [[nodiscard]] link_state state() const noexcept { return state_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// Where a call that waits for this connection stands.
  [[nodiscard]] phase waiting_phase() const noexcept;
  /// Why there is no connection: the last attempt's failure.
  [[nodiscard]] failure const& cause() const noexcept { return cause_; }
  /// Set while calls must be refused at once: the cause, marked as our own rejection, with `retry_after`.
  [[nodiscard]] std::optional<failure> rejection(time_point now) const;

  [[nodiscard]] lifecycle_snapshot snapshot() const noexcept;
  /// For tests: false when an invariant does not hold.
  [[nodiscard]] bool check() const noexcept;

 private:
  link_actions attempt(time_point now);
  link_actions back_off(failure why, duration pause, time_point now);
  link_actions greet(time_point now);
  link_actions refuse(failure why, time_point now);
  link_actions again(bool wanted, time_point now);

  lifecycle_options options_;
  random_source random_;
  backoff reconnect_;
  backoff retire_;
  link_state state_ = link_state::idle;
  std::uint64_t epoch_ = 0;
  time_point limit_{};  // of the state; resolving and connecting have one together
  time_point retry_at_{};
  time_point retire_allowed_ = time_point::min();
  unsigned unproven_losses_ = 0;
  failure cause_{};
  lifecycle_snapshot counts_{};
};

}  // namespace redoubt
