// SPDX-License-Identifier: BSL-1.0
//
// The smallest possible Redis connection for tests: a blocking socket that sends bytes as they are and
// returns the raw bytes of whole replies. Independent of everything under test.
#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redoubt::test_support {

/// The RESP encoding of a command.
[[nodiscard]] std::string encode(std::vector<std::string> const& words);

/// Length of the first whole RESP2 reply in `bytes`; 0 when it is not complete.
[[nodiscard]] std::size_t reply_length(std::string_view bytes);

/// A blocking connection. Throws `std::system_error` when it cannot connect. Not thread-safe.
class raw_redis {
 public:
  explicit raw_redis(int port);
  explicit raw_redis(std::string const& socket_path);
  ~raw_redis();
  raw_redis(raw_redis const&) = delete;
  raw_redis& operator=(raw_redis const&) = delete;

  /// Sends all bytes; false when the connection is gone.
  bool send(std::string_view bytes);

  /// The raw bytes of the next reply; empty when none came in time or the connection ended.
  std::optional<std::string> read(std::chrono::milliseconds limit = std::chrono::milliseconds(5000));

  /// Sends a command and reads its reply; "<nothing>" when there is none, "<closed>" at the end of the
  /// connection.
  std::string call(std::vector<std::string> const& command,
                   std::chrono::milliseconds limit = std::chrono::milliseconds(5000));

  /// Waits for the end of the connection; true when it came. Bytes that arrive meanwhile stay readable by
  /// `read`.
  bool wait_closed(std::chrono::milliseconds limit = std::chrono::milliseconds(5000));

  /// True once the peer has ended the connection.
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// Everything received that is not part of a reply already taken.
  [[nodiscard]] std::string const& pending() const noexcept { return buffer_; }
  /// Closes this side.
  void close();

 private:
  bool receive(std::chrono::steady_clock::time_point until);

  int fd_ = -1;
  bool closed_ = false;
  std::string buffer_;
};

}  // namespace redoubt::test_support
