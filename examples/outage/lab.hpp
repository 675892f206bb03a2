// SPDX-License-Identifier: BSL-1.0
//
// The place of the demonstration: an event loop, some Redis servers, and the ways to break them.
#pragma once

#include <chrono>
#include <concepts>
#include <csignal>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/client.hpp>

#include "outage/redis_server.hpp"
#include "outage/temporary_folder.hpp"

namespace outage {

namespace asio = boost::asio;

/// Thrown when somebody has pressed Ctrl-C, so that everything is cleaned up on the way out. What was under
/// way ends first: it cannot take long, and nothing is pulled away from under it.
struct interrupted {
  int signal = 0;
};

/// A value and how long it took.
template <class T>
struct timed {
  T value{};
  redoubt::duration took{};
};

template <class T>
asio::awaitable<timed<T>> with_time(asio::awaitable<T> work) {
  auto const executor = co_await asio::this_coro::executor;
  auto const start = redoubt::now(executor);
  T value = co_await std::move(work);
  co_return timed<T>{std::move(value), redoubt::now(executor) - start};
}

/// What a Redis can be like.
enum class condition { healthy, full, replica, paused, killed };

class lab {
 public:
  /// Starts the servers. Throws when one does not start, and when a signal arrives.
  lab();
  lab(lab const&) = delete;
  lab& operator=(lab const&) = delete;

  [[nodiscard]] asio::io_context& context() noexcept { return io_; }

  /// Runs the event loop until `work` has ended. Throws what it throws, or `interrupted`.
  template <class T>
  T run(asio::awaitable<T> work) {
    std::vector<asio::awaitable<T>> one;
    one.push_back(std::move(work));
    return std::move(run_all(std::move(one)).front());
  }

  /// The same for several things at once; results are in their order.
  template <class T>
  std::vector<T> run_all(std::vector<asio::awaitable<T>> works);

  /// Runs the event loop for a while.
  void wait(redoubt::duration time);

  /// The server for a condition. It is well until `begin`, and again after `end`.
  [[nodiscard]] redis_server& server(condition c) noexcept;
  void begin(condition c);
  void end(condition c);

  /// Connects a client that works, before something is broken.
  void connect(redoubt::client& redis);

 private:
  void turn();
  void start(std::vector<redis_server*> const& servers);
  void fill_memory();
  void await_replication();

  asio::io_context io_;
  asio::signal_set signals_{io_, SIGINT, SIGTERM, SIGHUP};
  asio::steady_timer limit_{io_, std::chrono::seconds(35)};
  int signal_ = 0;
  bool too_late_ = false;

  temporary_folder folder_;
  redis_server primary_{"primary", folder_.path()};
  redis_server full_{"full", folder_.path(), {"--maxmemory", "1mb", "--maxmemory-policy", "noeviction"}};
  redis_server replica_{
      "replica", folder_.path(), {"--replicaof", "127.0.0.1", std::to_string(primary_.port())}};
  redis_server victim_{"victim", folder_.path()};  // a second primary, to be killed
};

template <class T>
std::vector<T> lab::run_all(std::vector<asio::awaitable<T>> works) {
  static_assert(!std::same_as<T, bool>, "a std::vector<bool> holds no bools");
  struct progress {
    std::vector<T> values;
    std::size_t left = 0;
    std::exception_ptr error;
  };
  auto const state = std::make_shared<progress>();
  state->values.resize(works.size());
  state->left = works.size();
  for (std::size_t i = 0; i != works.size(); ++i) {
    asio::co_spawn(io_, std::move(works[i]), [state, i](std::exception_ptr error, T value) {
      if (error) state->error = error;
      state->values[i] = std::move(value);
      --state->left;
    });
  }
  while (state->left > 0) turn();
  if (signal_ != 0) throw interrupted{signal_};
  if (state->error) std::rethrow_exception(state->error);
  return std::move(state->values);
}

}  // namespace outage
