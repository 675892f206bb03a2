// SPDX-License-Identifier: BSL-1.0
//
// A world in virtual time: an io_context, a clock that only moves when nothing is left to do, a network, and
// Redis servers on it. A `redoubt::client` made on its executor connects to these servers, with the same code
// as in production; policies and timers run in its time. Same seed, same run, to the byte: `trace_hash()`
// proves it.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/testing/fake_server.hpp>
#include <redoubt/testing/sim_network.hpp>

namespace redoubt::testing {

namespace detail {
class world_core;
}

/// A Redis server of a world, with its outages by name. Obtained from a world, lives as long.
class sim_redis {
 public:
  sim_redis(detail::world_core& core, fake_server& server) : core_(core), server_(server) {}

  void pause();                      ///< SIGSTOP: connects, reads nothing.
  void resume();                     ///< SIGCONT.
  void kill();                       ///< SIGKILL: connections reset, data gone, refuses.
  void restart();                    ///< Starts it again, empty.
  void become_replica();             ///< Answers READONLY to writes, on the same connections.
  void become_primary();             ///< Takes writes again.
  void fill_memory();                ///< Answers OOM to writes.
  void free_memory();                ///< Takes writes again.
  void start_loading();              ///< Answers LOADING.
  void finish_loading();             ///< Answers again.
  void pause_writes(duration time);  ///< CLIENT PAUSE WRITE: writes hang, then are applied.
  void flush_scripts();              ///< SCRIPT FLUSH.

  /// The server itself: faults, keyspace, log. Functions that take a time want `world::now()`.
  [[nodiscard]] fake_server& server() noexcept { return server_; }
  [[nodiscard]] fake_server* operator->() noexcept { return &server_; }

 private:
  detail::world_core& core_;
  fake_server& server_;
};

/// See the head of this file. Not thread-safe: one thread builds it, runs it and destroys it. Objects made on
/// its executor (clients, policies, timers) must be destroyed before it.
class world {
 public:
  explicit world(std::uint64_t seed = 1);
  world(world const&) = delete;
  world& operator=(world const&) = delete;
  ~world();

  [[nodiscard]] asio::io_context& context() noexcept;
  [[nodiscard]] asio::any_io_executor get_executor() noexcept;
  [[nodiscard]] time_point now() const noexcept;

  /// The server that every endpoint leads to, unless `add_server` gave it one of its own.
  [[nodiscard]] sim_redis& redis() noexcept;
  /// Another server, at `endpoint` ("host:port" as in `client_options`, or a unix path).
  sim_redis& add_server(std::string endpoint);

  [[nodiscard]] network_faults& network() noexcept;
  [[nodiscard]] random_source& random() noexcept;

  /// Calls `what` at `when`; in the order of the times, then of the calls of this function.
  void at(time_point when, std::function<void()> what);

  /// Does everything that is due and then moves to the next event. False when nothing will ever happen again.
  bool step();
  /// Lets this much virtual time pass.
  void run_for(duration time);
  /// Steps until `done()` or until `limit` has passed; tells whether it is done.
  bool run_until(std::function<bool()> const& done, duration limit = std::chrono::hours(1));

  /// Runs a coroutine to its end and gives its value; throws what it throws, and std::runtime_error when it
  /// does not end within `limit` of virtual time.
  template <class T>
  T run(asio::awaitable<T> work, duration limit = std::chrono::hours(1)) {
    struct outcome : ending {
      std::optional<T> value;
    };
    auto const end = std::make_shared<outcome>();
    asio::co_spawn(get_executor(), std::move(work), [end](std::exception_ptr e, T v) {
      end->error = e;
      if (!e) end->value.emplace(std::move(v));
      end->done = true;
    });
    finish(*end, limit);
    return std::move(*end->value);
  }
  /// @copydoc run
  void run(asio::awaitable<void> work, duration limit = std::chrono::hours(1));

  /// A hash over everything that has happened: times, events, bytes.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept;
  /// Events so far.
  [[nodiscard]] std::uint64_t events() const noexcept;
  /// Connections of the simulated network that are open on the client's side.
  [[nodiscard]] std::size_t open_connections() const noexcept;

 private:
  /// How a coroutine ended. Shared with it: one that misses its limit may end later.
  struct ending {
    std::exception_ptr error{};
    bool done = false;
  };
  void finish(ending const& end, duration limit);
  std::unique_ptr<detail::world_core> core_;
};

}  // namespace redoubt::testing
