// SPDX-License-Identifier: BSL-1.0
//
// A redis-server process that can be paused, resumed and killed, and never outlives its owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace outage {

/// redis-server is not installed. `what()` says how to get it.
class no_redis_server : public std::runtime_error {
 public:
  no_redis_server();
};

/// One server on a free port of 127.0.0.1. Its destructor kills the process; should this program be killed,
/// the system kills it. Not thread-safe; to be used on the thread that runs main().
class redis_server {
 public:
  /// Nothing is started yet. Throws `no_redis_server`.
  redis_server(std::string name, std::filesystem::path folder, std::vector<std::string> options = {});
  redis_server(redis_server const&) = delete;
  redis_server& operator=(redis_server const&) = delete;
  ~redis_server();

  /// Starts the process; on the port it had before, if it ran before.
  void start();
  /// True once it accepts connections. Throws when the process has ended.
  [[nodiscard]] bool ready();

  /// SIGSTOP, and SIGCONT: it answers nothing, but the system still accepts connections for it. Returns when
  /// it has stopped.
  void pause();
  void resume();
  /// SIGKILL. Returns when the process is gone.
  void kill() noexcept;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  void signal(int number);
  [[nodiscard]] std::string log() const;

  std::string name_;
  std::filesystem::path folder_;
  std::vector<std::string> options_;
  std::string program_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace outage
