// SPDX-License-Identifier: BSL-1.0
//
// A reply as a value: an owned RESP2 tree.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <redoubt/core/error.hpp>

namespace redoubt {

/// An error line of the server, classified. Appears inside arrays and pipelines; alone it becomes a
/// `failure`.
struct server_error {
  /// The class of its leading word.
  server_errc code = server_errc::other;
  /// What Redis may have done: `none` unless a script had already started to run.
  redoubt::effect effect = redoubt::effect::none;
  /// The whole line without the leading '-'. Untrusted.
  std::string text;

  friend bool operator==(server_error const&, server_error const&) = default;
};

/// A status line such as `OK` or `PONG`.
struct status_line {
  std::string text;
  friend bool operator==(status_line const&, status_line const&) = default;
};

/// A RESP2 reply. Value type: owns everything below it. A default-constructed reply is nil.
class reply {
 public:
  using array = std::vector<reply>;

  reply() noexcept = default;
  explicit reply(std::int64_t n) noexcept : kind_(kind::integer), integer_(n) {}
  explicit reply(std::string text) noexcept : kind_(kind::string), line_{.text = std::move(text)} {}
  explicit reply(status_line line) noexcept : kind_(kind::status), line_{.text = std::move(line.text)} {}
  explicit reply(server_error error) noexcept : kind_(kind::error), line_(std::move(error)) {}
  explicit reply(array elements) noexcept : kind_(kind::array), elements_(std::move(elements)) {}

  [[nodiscard]] bool is_nil() const noexcept { return kind_ == kind::nil; }
  [[nodiscard]] bool is_integer() const noexcept { return kind_ == kind::integer; }
  /// A bulk string; a status line is not one.
  [[nodiscard]] bool is_string() const noexcept { return kind_ == kind::string; }
  [[nodiscard]] bool is_status() const noexcept { return kind_ == kind::status; }
  [[nodiscard]] bool is_error() const noexcept { return kind_ == kind::error; }
  [[nodiscard]] bool is_array() const noexcept { return kind_ == kind::array; }

  /// The integer; 0 when it is not one.
  [[nodiscard]] std::int64_t as_integer() const noexcept { return integer_; }
  /// The text of a bulk string or status line; empty otherwise.
  [[nodiscard]] std::string_view as_string() const noexcept {
    return has_text() ? std::string_view(line_.text) : std::string_view();
  }
  /// The elements; empty when it is not an array.
  [[nodiscard]] array const& as_array() const noexcept { return elements_; }
  /// The error; one of `server_errc::none` when it is not one.
  [[nodiscard]] server_error const& as_error() const noexcept;

  /// Moves the text out of a bulk string or status line; empty otherwise.
  [[nodiscard]] std::string take_string() && { return has_text() ? std::move(line_.text) : std::string(); }
  /// Moves the elements out of an array; empty otherwise.
  [[nodiscard]] array take_array() && { return std::move(elements_); }

  /// Becomes a bulk string, made in place.
  void set_string(std::string_view text) {
    kind_ = kind::string;
    integer_ = 0;
    line_.code = server_errc::other;
    line_.effect = effect::none;
    line_.text = text;
    elements_.clear();
  }

  /// The elements for filling in place; must be an array.
  [[nodiscard]] array& elements() noexcept { return elements_; }

  friend bool operator==(reply const&, reply const&) = default;

 private:
  enum class kind : std::uint8_t { nil, integer, string, status, error, array };

  [[nodiscard]] bool has_text() const noexcept { return kind_ == kind::string || kind_ == kind::status; }

  // One member for each, not a variant: whoever includes this would pay for it at each compilation.
  kind kind_ = kind::nil;
  std::int64_t integer_ = 0;
  server_error line_;  // the text of a string or status line is in it, too
  array elements_;
};

/// Prints in the manner of redis-cli, on one line, for logs and test output.
std::ostream& operator<<(std::ostream& out, reply const& r);

/// Classifies an error line (without the leading '-') by its leading word. The one place that compares the
/// server's text. Understands errors raised inside scripts, in the form of Redis 7 ("OOM ... script: <sha>")
/// and in the older one ("ERR Error running script ...: -OOM ...").
[[nodiscard]] server_error parse_server_error(std::string_view line);

/// What a script may have done before its call was answered with this error. Its words are the script's own,
/// or those of a command inside it, so nothing is certain unless the server refused to start the script.
[[nodiscard]] effect effect_inside_script(server_error const& error) noexcept;

}  // namespace redoubt
