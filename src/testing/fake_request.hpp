// SPDX-License-Identifier: BSL-1.0
//
// Bytes to requests, as a Redis server reads them: arrays of bulk strings, or one line of words. Not
// `redoubt::reader`, which reads replies: a server answers a malformed request with texts of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redoubt::testing::detail {

using arguments = std::vector<std::string>;

/// An incremental parser of one connection's input. After an error it reads nothing more.
class request_parser {
 public:
  explicit request_parser(std::size_t argument_bytes_max) : argument_bytes_max_(argument_bytes_max) {}

  void feed(std::string_view bytes) { buffer_ += bytes; }

  /// The next whole request, never empty; nothing when bytes are missing or `error()` is set. Before a
  /// connection has authenticated Redis allows few and short arguments only.
  [[nodiscard]] std::optional<arguments> next(bool authenticated);

  /// The text behind "ERR Protocol error: "; empty while there is none.
  [[nodiscard]] std::string const& error() const noexcept { return error_; }

 private:
  enum class step : unsigned char { again, done, more };

  std::optional<std::string_view> take_line(char const* too_big);
  step inline_request(arguments& out);
  step header(bool authenticated);
  step argument(bool authenticated);

  std::size_t argument_bytes_max_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::optional<std::size_t> missing_;  // arguments of the current array that have not been read
  std::optional<std::size_t> length_;   // of the argument that comes next
  arguments words_;
  std::string error_;
};

}  // namespace redoubt::testing::detail
