// SPDX-License-Identifier: BSL-1.0
//
// What the library tells an observer. Typed values, no strings built for the purpose, no key, argument or
// secret.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// What happened.
enum class event_kind : std::uint8_t {
  connecting,     ///< A connection attempt starts.
  ready,          ///< A connection finished its handshake.
  lost,           ///< A connection was lost, refused or stalled; `cause` says why, and where it led.
  retired,        ///< A connection was given up in favour of another: it led to a read-only replica.
  call_sent,      ///< A command was given to a connection. Only for `wants_calls()`.
  call_finished,  ///< A call has ended; `cause` is null when it was answered. Only for `wants_calls()`.
  late_reply_discarded,   ///< A reply arrived after its call had ended, and was dropped.
  call_rejected,          ///< A call was refused before sending; `cause` says why.
  cache_read_failed,      ///< A cache read failed and the loader was used instead.
  cache_write_failed,     ///< A loaded value could not be stored; it was returned all the same.
  cache_value_malformed,  ///< A cached value could not be decoded and counts as a miss.
  load_refused,           ///< No slot for a load, or the load did not end in time.
  limiter_refused,        ///< Over the limit.
  limiter_unavailable,    ///< A limiter could not ask Redis; what followed depends on its fail mode.
  admission_refused,      ///< An attempt exists already.
  admission_unavailable,  ///< An admission could not ask Redis; what followed depends on its fail mode.
  probe_changed,          ///< A write probe's answer differs from the one before.
  breaker_opened,         ///< A circuit breaker opened; `cause` says because of what.
  breaker_trying,         ///< An open breaker lets one trial through.
  breaker_recovering,     ///< The trial succeeded; a growing share of the calls passes.
  breaker_closed,         ///< A breaker lets everything through again.
};

/// One call, for `call_sent` and `call_finished`: for traces and histograms.
struct call_report {
  /// The command's name, without arguments; of a pipeline its first command's, of a transaction `MULTI`.
  command_name command{};
  /// Since the call was made.
  duration elapsed{};
  /// With `call_finished`: how `elapsed` divides into phases.
  phase_times times{};
};

/// One event. The references are valid during the call only.
struct event {
  event_kind kind{};
  /// The name of the object that speaks: a client's name or a policy's `name` option. May be empty.
  std::string_view source{};
  /// Why, where there is a reason; may be null.
  failure const* cause = nullptr;
  /// With `call_sent` and `call_finished`, else null.
  call_report const* call = nullptr;
};

/// Receives events. Implementations must be thread-safe where the object that reports to them is used from
/// several threads, must not block and must not throw. Called outside every lock of the library.
class event_sink {
 public:
  virtual ~event_sink() = default;
  /// Called once per event.
  virtual void on(event const& e) noexcept = 0;
  /// True to be told of every single call: `call_sent`, `call_finished`. A client asks once, when it is made.
  /// The default is false, and then a call costs no more than without a sink.
  [[nodiscard]] virtual bool wants_calls() const noexcept { return false; }
};

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(event_kind kind) noexcept;
/// Prints `to_string(kind)`.
std::ostream& operator<<(std::ostream& out, event_kind kind);

}  // namespace redoubt
