// SPDX-License-Identifier: BSL-1.0
//
// A `fake_server` behind real sockets: for tests of whatever connects by itself. Real time, own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <redoubt/core/time.hpp>
#include <redoubt/testing/fake_server.hpp>

namespace redoubt::testing {

/// What a `loopback_server` listens to.
struct loopback_options {
  /// Listen on 127.0.0.1. Default true.
  bool tcp = true;
  /// The TCP port; 0 takes any free one. Default 0.
  std::uint16_t port = 0;
  /// Listen on a unix socket at this path as well. An old socket at the path is removed. Default: empty,
  /// none.
  std::string unix_path{};
  /// How the server starts.
  fake_server_options server{};
};

/// Serves a `fake_server` over loopback and unix sockets on a thread of its own. What the sockets do follows
/// the server's state: paused, it accepts but does not read; killed, it resets its connections and refuses
/// new ones.
///
/// Thread-safe: all members may be called from any thread but the server's own (that is, not inside `with`).
/// Each returns when the server has done it. The destructor resets all connections and ends the thread.
class loopback_server {
 public:
  /// @throws boost::system::system_error when it cannot listen.
  explicit loopback_server(loopback_options options = {});
  ~loopback_server();
  loopback_server(loopback_server const&) = delete;
  loopback_server& operator=(loopback_server const&) = delete;

  /// The TCP port; the same after a restart. 0 without TCP.
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// The path of the unix socket; empty without one.
  [[nodiscard]] std::string const& unix_path() const noexcept;

  /// Runs `what` with the server and the time on the server's thread. An exception of `what` is thrown here.
  void with(std::function<void(fake_server&, time_point)> const& what);

  void pause();    ///< SIGSTOP: accepts, reads nothing, says nothing.
  void resume();   ///< SIGCONT.
  void kill();     ///< SIGKILL: resets, refuses; data is lost.
  void restart();  ///< Listens again, empty.

  /// Does not read any more, so that the peers' send buffers fill. The server is alive otherwise.
  void stop_reading();
  void start_reading();

  /// Sends at most `bytes` (at least 1) at once on each connection, then waits for `every` (more than zero).
  void drip(std::size_t bytes, duration every);
  /// Sends at full speed again.
  void stop_dripping();

  /// Accepts nothing more and fills the queue of waiting TCP connections, so that connecting neither succeeds
  /// nor fails.
  void fill_backlog();
  /// Accepts again.
  void drain_backlog();

  /// Connections that are open.
  [[nodiscard]] std::size_t connections();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace redoubt::testing
