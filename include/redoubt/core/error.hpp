// SPDX-License-Identifier: BSL-1.0
//
// What can go wrong, in closed lists: our own codes, the server's codes, what Redis may have done, where the
// time went, and the classes by which a route decides. Nobody outside resp/server_error compares text.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace redoubt {

/// Why an operation did not give its value. docs/ERRORS.md explains each code with its effect and what to do.
enum class errc : std::uint8_t {
  unspecified,         ///< A default-constructed failure; never delivered by the library.
  deadline_exceeded,   ///< The time allowed for the call was used up; `phase` says where.
  cancelled,           ///< The caller cancelled the operation.
  connection_refused,  ///< Nothing listens at the endpoint, or the socket file does not exist.
  connect_timeout,     ///< The endpoint did not accept a connection within `timeouts.connect`.
  connect_failed,      ///< The operating system refused the connection for another reason.
  resolve_failed,      ///< The host name could not be resolved.
  connection_lost,     ///< The connection was closed or reset while the call was under way.
  connection_stalled,  ///< The connection owed replies for longer than the stall limit and was given up.
  protocol_error,      ///< The peer sent something that is not RESP2; the connection was closed.
  reply_too_large,     ///< A reply was larger than `bounds.reply_bytes` or `bounds.array_elements`.
  request_too_large,   ///< The command alone is larger than `bounds.queued_bytes`.
  queue_full,          ///< `bounds.in_flight` calls or `bounds.queued_bytes` bytes are already under way.
  closed,              ///< The client is closed, closing, or was destroyed.
  bad_option,          ///< An option is out of range; the text names the field and the value.
  refused_command,     ///< The command cannot share a connection (SUBSCRIBE, MULTI, BLPOP, SELECT, ...).
  unexpected_reply,    ///< Redis answered with a type that was not asked for.
  server_error,        ///< Redis answered with an error; `failure::server` says which.
  bulkhead_full,       ///< All slots and waiting places of a bulkhead are taken.
  retries_exhausted,   ///< A retry gave up before its first attempt could be made in the time left.
  load_timeout,        ///< The application's loader did not end within `load_timeout`.
  load_failed,         ///< The application's loader or operation threw.
  breaker_open,        ///< A circuit breaker refuses the call; `failure::cause` says what opened it.
  limit_exceeded,      ///< A guard's own time limit was used up, before the caller's deadline.
  flight_full,         ///< All keys or followers of a single flight are taken.
  rate_limited,        ///< Our own token bucket or adaptive throttle refused.
  remote_failed,       ///< A service other than Redis answered that it failed (HTTP 500, 502, 503, 504).
  remote_throttled,    ///< A service other than Redis answered that we ask too often (HTTP 429).
  remote_rejected,  ///< A service other than Redis answered that the request is wrong (HTTP 400, 401, 422).
  tls_failed,       ///< The TLS handshake failed: the peer does not speak TLS, or no version in common.
  tls_untrusted,    ///< One side does not trust the other's certificate; the text says why.
  no_credentials,   ///< `client_options::credentials` gave none.
  forked,           ///< The client was made before a fork() and belongs to the parent process.
};

/// The error that Redis answered with: the leading word of its error line, classified once.
enum class server_errc : std::uint8_t {
  none,         ///< Not an error of the server.
  other,        ///< A leading word that is not in this list (modules, scripts, newer servers).
  err,          ///< `-ERR ...`: syntax, unknown command, wrong number of arguments, script failure.
  readonly,     ///< The target is a read-only replica.
  oom,          ///< `maxmemory` is reached and nothing may be evicted.
  noreplicas,   ///< Fewer replicas than `min-replicas-to-write`.
  misconf,      ///< Snapshots fail and `stop-writes-on-bgsave-error` is set.
  clusterdown,  ///< The cluster has unassigned slots.
  masterdown,   ///< A replica without its primary and without stale reads.
  loading,      ///< The data set is being loaded.
  busy,         ///< A script runs past its time limit.
  tryagain,     ///< A multi-key command during resharding.
  max_clients,  ///< `maxclients` is reached.
  noauth,       ///< Authentication is required.
  wrongpass,    ///< User name or password are wrong.
  noperm,       ///< The ACL user may not run this command or touch this key.
  moved,        ///< The key lives on another cluster node.
  ask,          ///< The key is being moved to another cluster node.
  crossslot,    ///< Keys of one command live in different slots.
  wrongtype,    ///< The key holds another type.
  noscript,     ///< The script is not in the server's cache.
  execabort,    ///< A command of the transaction was refused, so none ran.
  noproto,      ///< The server does not speak the asked protocol version.
  unkillable,   ///< The running script has written and cannot be killed.
  notbusy,      ///< There is no script to kill.
  busygroup,    ///< The consumer group exists already.
  nogroup,      ///< The consumer group does not exist.
};

/// What Redis may have done with the command when a call fails. This alone decides whether repeating is safe.
enum class effect : std::uint8_t {
  none,     ///< The command was not executed and never will be: nothing was sent, or the server refused it.
  unknown,  ///< Bytes of the command may have reached Redis: it may be executed, or may still be.
};

/// Where a call was when it ended.
enum class phase : std::uint8_t {
  queue,      ///< Waiting for its turn to be written.
  resolve,    ///< Waiting for the host name.
  connect,    ///< Waiting for the connection to be accepted.
  tls,        ///< Waiting for the TLS handshake.
  handshake,  ///< Waiting for AUTH, SELECT, CLIENT SETNAME and PING.
  write,      ///< Being written.
  read,       ///< Written; waiting for the reply.
  done,       ///< The reply arrived.
};

/// How a failure is treated: by a route's fail mode and by a breaker. The table is in docs/ERRORS.md.
enum class failure_class : std::uint8_t {
  unavailable,    ///< Redis cannot answer: refused, lost, expired, LOADING, BUSY, ... Fail modes apply.
  write_refused,  ///< Redis answers but refuses writes: READONLY, OOM, ... Fail modes apply.
  saturated,  ///< Refused for lack of room, by us before sending or by the other side (HTTP 429). Fail modes
              ///< apply.
  misconfigured,  ///< Wrong password, missing right, bad option. Surfaces as an error, never fails open.
  caller_error,   ///< Wrong type, syntax, script error, refused command. Surfaces as an error, never fails
                  ///< open.
  cancelled,      ///< The caller's own cancellation. No fallback, ever.
};

/// The enumerator's name, for logs and test output; never empty.
[[nodiscard]] std::string_view to_string(errc code) noexcept;
/// @copydoc to_string(errc)
[[nodiscard]] std::string_view to_string(server_errc code) noexcept;
/// @copydoc to_string(errc)
[[nodiscard]] std::string_view to_string(effect what) noexcept;
/// @copydoc to_string(errc)
[[nodiscard]] std::string_view to_string(phase where) noexcept;
/// @copydoc to_string(errc)
[[nodiscard]] std::string_view to_string(failure_class group) noexcept;

/// The class of a server error.
[[nodiscard]] failure_class classify(server_errc code) noexcept;

/// Prints `to_string(code)`.
std::ostream& operator<<(std::ostream& out, errc code);
/// @copydoc operator<<(std::ostream&, errc)
std::ostream& operator<<(std::ostream& out, server_errc code);
/// @copydoc operator<<(std::ostream&, errc)
std::ostream& operator<<(std::ostream& out, effect what);
/// @copydoc operator<<(std::ostream&, errc)
std::ostream& operator<<(std::ostream& out, phase where);
/// @copydoc operator<<(std::ostream&, errc)
std::ostream& operator<<(std::ostream& out, failure_class group);

}  // namespace redoubt
