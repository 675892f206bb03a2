// SPDX-License-Identifier: BSL-1.0
//
// What tests of the client on real sockets share: an io_context with a thread of its own, and calls that
// wait.
#pragma once

#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <redoubt/client.hpp>

namespace redoubt::test_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// True when the bounds of the published figures are to be asserted: REDOUBT_STRICT=1, on a quiet machine,
/// without sanitizers. Otherwise the bounds are wide enough for a shared one.
[[nodiscard]] inline bool strict() { return !sanitized && std::getenv("REDOUBT_STRICT") != nullptr; }

/// An io_context that runs on `threads` threads until the object is destroyed.
class running_context {
 public:
  explicit running_context(int threads = 1) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
  }
  ~running_context() {
    work_.reset();
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  running_context(running_context const&) = delete;
  running_context& operator=(running_context const&) = delete;

  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] boost::asio::any_io_executor executor() { return io_.get_executor(); }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<std::thread> threads_;
};

/// One call that waits for its result, from a thread that does not run the context.
[[nodiscard]] inline result<reply> call(client& c, command cmd, call_options options = {}) {
  return c.async_call(std::move(cmd), options, boost::asio::use_future).get();
}

/// Calls until one succeeds; the time it took, or nothing after `limit`.
[[nodiscard]] inline std::optional<duration> first_success(client& c, duration limit) {
  auto const start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < limit) {
    if (call(c, command("PING"))) return std::chrono::steady_clock::now() - start;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return std::nullopt;
}

}  // namespace redoubt::test_support
