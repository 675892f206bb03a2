// SPDX-License-Identifier: BSL-1.0
//
// A reply as a value: an owned RESP2 tree.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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
  explicit reply(std::int64_t n) noexcept : value_(n) {}
  explicit reply(std::string text) noexcept : value_(std::move(text)) {}
  explicit reply(status_line line) noexcept : value_(std::move(line)) {}
  explicit reply(server_error error) noexcept : value_(std::move(error)) {}
  explicit reply(array elements) noexcept : value_(std::move(elements)) {}

  [[nodiscard]] bool is_nil() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] bool is_integer() const noexcept { return std::holds_alternative<std::int64_t>(value_); }
  /// A bulk string; a status line is not one.
  [[nodiscard]] bool is_string() const noexcept { return std::holds_alternative<std::string>(value_); }
  [[nodiscard]] bool is_status() const noexcept { return std::holds_alternative<status_line>(value_); }
  [[nodiscard]] bool is_error() const noexcept { return std::holds_alternative<server_error>(value_); }
  [[nodiscard]] bool is_array() const noexcept { return std::holds_alternative<array>(value_); }

  /// The integer; 0 when it is not one.
  [[nodiscard]] std::int64_t as_integer() const noexcept {
    auto const* n = std::get_if<std::int64_t>(&value_);
    return n ? *n : 0;
  }
  /// The text of a bulk string or status line; empty otherwise.
  [[nodiscard]] std::string_view as_string() const noexcept {
    if (auto const* text = std::get_if<std::string>(&value_)) return *text;
    if (auto const* line = std::get_if<status_line>(&value_)) return line->text;
    return {};
  }
  /// The elements; empty when it is not an array.
  [[nodiscard]] array const& as_array() const noexcept;
  /// The error; must be one.
  [[nodiscard]] server_error const& as_error() const { return std::get<server_error>(value_); }

  /// Moves the text out of a bulk string or status line; empty otherwise.
  [[nodiscard]] std::string take_string() && {
    if (auto* text = std::get_if<std::string>(&value_)) return std::move(*text);
    if (auto* line = std::get_if<status_line>(&value_)) return std::move(line->text);
    return {};
  }
  /// Moves the elements out of an array; empty otherwise.
  [[nodiscard]] array take_array() && {
    auto* elements = std::get_if<array>(&value_);
    return elements ? std::move(*elements) : array{};
  }

  /// Becomes a bulk string, made in place.
  void set_string(std::string_view text) { value_.emplace<std::string>(text); }

  /// The elements for filling in place; must be an array.
  [[nodiscard]] array& elements() { return std::get<array>(value_); }

  friend bool operator==(reply const&, reply const&) = default;

 private:
  std::variant<std::monostate, std::int64_t, std::string, status_line, server_error, array> value_;
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
