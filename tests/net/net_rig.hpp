// SPDX-License-Identifier: BSL-1.0
//
// What the tests of this folder share: options for a server of the test, many calls at a time, bounds in real
// time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/testing/loopback_server.hpp>

#include "client_fixture.hpp"
#include "scripted_server.hpp"

namespace redoubt::test_support {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// How much later than its time something may happen on a shared machine. What is exact is tested in virtual
/// time.
inline const duration slack = strict() ? 50ms : sanitized ? 1500ms : 500ms;

[[nodiscard]] inline client_options towards(scripted_server const& server) {
  return {.address = {.port = server.port(), .unix_path = server.path()}};
}
[[nodiscard]] inline client_options towards(testing::loopback_server const& server) {
  return {.address = {.port = server.port()}};
}
/// Limits that no healthy call on a loaded machine reaches.
[[nodiscard]] inline client_options patient(client_options options) {
  options.timeouts = {.connect = 20s, .attempt = 20s, .call = 20s};
  options.reconnect.stall_limit = 30s;
  return options;
}

/// A call whose result is looked at later.
struct seen_call {
  steady::time_point started{};
  steady::time_point ended{};
  int completions = 0;
  std::optional<result<reply>> got;
  [[nodiscard]] duration took() const { return ended - started; }
};

/// Many calls under way; every completion is counted.
class crowd {
 public:
  explicit crowd(std::size_t size) : calls_(size) {}

  /// A handler that notes the end of call `i`.
  auto handler(std::size_t i) {
    return [this, i](result<reply> got) { note(i, std::move(got)); };
  }
  void start(client& c, std::size_t i, command cmd, call_options options = {}) {
    calls_[i].started = steady::now();
    c.async_call(std::move(cmd), options, handler(i));
  }
  void note(std::size_t i, result<reply> got) {
    std::lock_guard const lock(mutex_);
    auto& one = calls_[i];
    one.ended = steady::now();
    if (one.completions++ == 0) ++ended_;
    one.got = std::move(got);
    changed_.notify_all();
  }
  /// True when all have ended within `limit`.
  [[nodiscard]] bool wait(duration limit = 60s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return ended_ == calls_.size(); });
  }
  [[nodiscard]] std::size_t ended() const {
    std::lock_guard const lock(mutex_);
    return ended_;
  }
  /// Only after `wait`.
  [[nodiscard]] std::vector<seen_call> const& calls() const noexcept { return calls_; }
  [[nodiscard]] seen_call const& operator[](std::size_t i) const noexcept { return calls_[i]; }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<seen_call> calls_;
  std::size_t ended_ = 0;
};

/// Waits until `what()` is true; false after `limit`.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate what, duration limit = 20s) {
  auto const end = steady::now() + limit;
  while (!what()) {
    if (steady::now() > end) return false;
    std::this_thread::sleep_for(500us);
  }
  return true;
}

[[nodiscard]] inline double ms(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

}  // namespace redoubt::test_support
