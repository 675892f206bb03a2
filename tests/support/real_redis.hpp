// SPDX-License-Identifier: BSL-1.0
//
// A real redis-server for a test: own process, own temporary folder, a free port and a unix socket. Nothing
// is left behind, also when the test crashes (the server dies with the test).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace redoubt::test_support {

/// A port of 127.0.0.1 that nobody listens at now.
[[nodiscard]] int free_port();

/// One redis-server process. Started by the constructor, ended and cleaned up by the destructor. Without
/// persistence unless the arguments say otherwise. Throws `std::runtime_error` when the server cannot be
/// started. Not thread-safe.
class real_redis {
 public:
  /// `arguments` are added to the command line, e.g. {"--maxmemory", "1mb"}.
  explicit real_redis(std::vector<std::string> arguments = {});
  ~real_redis();
  real_redis(real_redis const&) = delete;
  real_redis& operator=(real_redis const&) = delete;

  /// On 127.0.0.1; the same after a restart.
  [[nodiscard]] int port() const noexcept { return port_; }
  /// The unix socket, inside `dir()`.
  [[nodiscard]] std::string socket_path() const { return (dir_ / "redis.sock").string(); }
  /// The server's working folder.
  [[nodiscard]] std::filesystem::path const& dir() const noexcept { return dir_; }
  /// -1 while it does not run.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// What the server has logged since it was started last.
  [[nodiscard]] std::string log() const;
  /// True when a redis-server program can be found.
  [[nodiscard]] static bool available();

  /// Starts it again after `stop` or `kill`, on the same port; returns when it is ready for connections.
  void start();
  /// SIGTERM, and waits for the end.
  void stop();
  /// SIGKILL, and waits for the end.
  void kill();
  /// SIGSTOP.
  void pause();
  /// SIGCONT.
  void resume();

 private:
  bool start_once();
  void signal_and_wait(int signal);

  std::vector<std::string> arguments_;
  std::filesystem::path dir_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace redoubt::test_support
