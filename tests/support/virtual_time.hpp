// SPDX-License-Identifier: BSL-1.0
//
// A world seen as a stop-watch: what tests of policies need of it.
#pragma once

#include <exception>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/testing/world.hpp>

namespace test {

namespace asio = boost::asio;

/// A world with its time since the start.
class virtual_context {
 public:
  [[nodiscard]] redoubt::testing::world& world() noexcept { return world_; }
  [[nodiscard]] asio::any_io_executor executor() noexcept { return world_.get_executor(); }
  [[nodiscard]] redoubt::time_point now() const noexcept { return world_.now(); }
  /// Since this was made.
  [[nodiscard]] redoubt::duration elapsed() const { return world_.now() - start_; }
  /// The deadline that lies so far ahead.
  [[nodiscard]] redoubt::deadline in(redoubt::duration d) const {
    return redoubt::deadline(world_.now() + d);
  }

  /// Runs everything that is ready, without moving time.
  void settle() { world_.run_for(redoubt::duration::zero()); }
  /// Lets so much time pass.
  void run_for(redoubt::duration d) { world_.run_for(d); }
  /// Runs until nothing is left.
  void run() {
    while (world_.step()) {
    }
  }
  /// Runs a coroutine to its end and gives its value.
  template <class T>
  T run(asio::awaitable<T> work) {
    return world_.run(std::move(work));
  }
  /// Starts a coroutine.
  void spawn(asio::awaitable<void> work) {
    asio::co_spawn(world_.get_executor(), std::move(work), [](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);
    });
  }

 private:
  redoubt::testing::world world_;
  redoubt::time_point start_ = world_.now();
};

}  // namespace test
