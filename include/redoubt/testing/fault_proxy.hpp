// SPDX-License-Identifier: BSL-1.0
//
// A TCP proxy that does to connections what networks do: delays, narrows, cuts into pieces, swallows, ends.
// For tests of whatever connects by itself, against any server. Real time, own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <redoubt/core/time.hpp>

namespace redoubt::testing {

/// Where a `fault_proxy` stands.
struct fault_proxy_options {
  /// Port of the server behind it. Required: 1 .. 65535.
  std::uint16_t server_port = 0;
  /// Numeric address of the server behind it. Default "127.0.0.1".
  std::string server_address = "127.0.0.1";
  /// The port to listen to, on 127.0.0.1. Default 0: any that is free.
  std::uint16_t port = 0;
  /// Drives the jitter. The n-th connection draws the same numbers in every run with the same seed.
  /// Default 1.
  std::uint64_t seed = 1;
};

/// What happens to bytes on their way in one direction. The default is: nothing.
struct direction_faults {
  /// Bytes arrive later by so much. They stay in order. Default none.
  duration delay = duration::zero();
  /// Up to so much later still: uniform in [0, jitter], drawn for each piece that is read. Default none.
  duration jitter = duration::zero();
  /// Bytes per second of one connection; at least 1. Default: as fast as it goes.
  std::optional<std::size_t> bandwidth{};
  /// Most bytes that are sent at once; at least 1. Default: as they come.
  std::optional<std::size_t> slice{};
  /// The pause after each piece that was sent. Default none.
  duration slice_pause = duration::zero();
  /// Nothing passes and nobody is told, not even of an end. What is under way is kept, as TCP would repeat
  /// it, and arrives when this is over; the sender's buffers fill meanwhile. Default false.
  bool blackhole = false;
  /// A connection ends when so many bytes in all have passed through it in this direction. Default: never.
  std::optional<std::uint64_t> cut_after{};
  /// Whether `cut_after` ends it with a reset (RST) rather than in the ordinary way (FIN). Default false.
  bool cut_with_reset = false;
};

/// What a `fault_proxy` does, to every connection, from now on. The default is: it passes everything on.
struct proxy_faults {
  direction_faults to_server{};
  direction_faults to_client{};
  /// New connections are refused by the system: nobody listens. Default false.
  bool refuse = false;
  /// A connection is accepted by the system at once, as ever, but served only after this. Default none.
  duration accept_delay = duration::zero();
};

/// What a `fault_proxy` has done so far.
struct proxy_counters {
  std::uint64_t accepted = 0;         ///< Connections of clients.
  std::uint64_t open = 0;             ///< Of these, now open.
  std::uint64_t server_failed = 0;    ///< Ended at once because the server could not be reached.
  std::uint64_t cut = 0;              ///< Ended by `cut_after` or `close_connections()`, with FIN.
  std::uint64_t reset = 0;            ///< Ended by `cut_after` or `reset_connections()`, with RST.
  std::uint64_t bytes_to_server = 0;  ///< Bytes passed on to the server.
  std::uint64_t bytes_to_client = 0;  ///< Bytes passed on to clients.
};

/// See the head of this file. What one side does, the other side sees: an end (FIN) after the bytes before
/// it, a reset at once.
///
/// Thread-safe: all members may be called from any thread but the proxy's own (that is, not inside `change`).
/// Each returns when the proxy has done it. The destructor resets all connections and ends the thread.
class fault_proxy {
 public:
  /// @throws boost::system::system_error when it cannot listen or `server_address` is not an address.
  explicit fault_proxy(fault_proxy_options options);
  ~fault_proxy();
  fault_proxy(fault_proxy const&) = delete;
  fault_proxy& operator=(fault_proxy const&) = delete;

  /// The port it listens to; stays the same.
  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Replaces what it does. Also holds for connections that are open and for bytes that are under way.
  /// @throws boost::system::system_error when it cannot listen again.
  void set(proxy_faults const& faults);
  /// Changes what it does: `what` runs on the proxy's thread. Throws what `what` throws, and as `set` does.
  void change(std::function<void(proxy_faults&)> const& what);
  /// What it does now.
  [[nodiscard]] proxy_faults faults();

  /// Ends all open connections, on both sides, with a reset (RST).
  void reset_connections();
  /// Ends all open connections, on both sides, in the ordinary way (FIN). Bytes under way are lost.
  void close_connections();
  /// From now on nothing passes through the connections that are open, in either direction, for ever, and
  /// nobody is told: a path that has died. New connections are not concerned.
  void freeze_connections();

  [[nodiscard]] proxy_counters counters();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace redoubt::testing
