// SPDX-License-Identifier: BSL-1.0
//
// A command as bytes: an array of length-prefixed strings, so no argument can ever become syntax. There is no
// printf-style interface on purpose.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <redoubt/core/failure.hpp>
#include <redoubt/resp/wire_bytes.hpp>

namespace redoubt {

/// What can be an argument of a command: text of any bytes, or a number.
template <class T>
concept command_argument = std::convertible_to<T const&, std::string_view> || std::is_arithmetic_v<T>;

/// One Redis command, encoded as RESP when it is built. Owns its bytes (no allocation up to 80 of them, one
/// above); copyable; movable. Arguments may hold any byte, CR LF and NUL included. Integers are written in
/// decimal, floating point numbers in the shortest form that reads back the same, `bool` as 1 or 0.
///
/// `command("SET", key, value, "PX", 60'000)`
///
/// Never write it as a braced list inside `co_await`; the constructor form is safe on every supported
/// compiler.
class command {
 public:
  /// `name` and arguments, in order.
  template <command_argument... Args>
  explicit command(std::string_view name, Args const&... args) {
    (void)bytes_.room(header_size + encoded_size(name) + (encoded_size(args) + ... + 0));
    bytes_.advance(header_size);
    append(name);
    (append(args), ...);
    write_header();
  }

  /// Adds one argument at the end.
  template <command_argument T>
  command& add(T const& arg) {
    append(arg);
    write_header();
    return *this;
  }

  /// The encoded command; empty once it was moved from.
  [[nodiscard]] std::string_view wire() const noexcept { return bytes_.view().substr(start_); }

  /// Name and arguments together; at least 1, and 0 once it was moved from: such a command is refused by
  /// whoever is to send it.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  /// The name (0) or the i-th argument; empty when `i` >= size(). Linear in `i`.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept;

  /// Gives the bytes away: the encoded command starts at `second`.
  [[nodiscard]] std::pair<detail::wire_bytes, std::size_t> release() && {
    count_ = 0;
    auto const start = std::uint32_t{std::exchange(start_, {})};
    return {std::move(bytes_), start};
  }

  /// The name as it was given.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  // Room for "*4294967295\r\n" in front of the body, so that add() never moves the body.
  static constexpr std::size_t header_size = 13;

  template <class T>
  static std::size_t encoded_size(T const& arg) noexcept {
    if constexpr (std::is_arithmetic_v<T>) {
      return encoded_size(std::string_view("12345678"));  // a guess: most are short
    } else {
      std::size_t const size = std::string_view(arg).size();
      std::size_t digits = 1;
      for (auto rest = size; rest >= 10; rest /= 10) ++digits;
      return 1 + digits + 2 + size + 2;
    }
  }

  template <class T>
  void append(T const& arg) {
    if constexpr (std::same_as<T, bool>) {
      append_text(arg ? "1" : "0");
    } else if constexpr (std::is_floating_point_v<T>) {
      append_number(arg);
    } else if constexpr (std::is_arithmetic_v<T>) {
      append_number(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(arg));
    } else {
      append_text(std::string_view(arg));
    }
  }

  void append_text(std::string_view text);
  void append_number(std::int64_t n);
  void append_number(std::uint64_t n);
  void append_number(float n);
  void append_number(double n);
  void append_number(long double n);
  void write_header() noexcept;

  detail::wire_bytes bytes_;
  detail::moving_count start_;
  detail::moving_count count_;
};

/// Commands that are sent together, under one deadline, each with its own result. Between them other callers'
/// commands may be executed; see `transaction` for the other kind. Empty once it was moved from.
class pipeline {
 public:
  pipeline() = default;

  /// `pipeline(command("GET", "a"), command("GET", "b"))`
  template <std::same_as<command>... Commands>
  explicit pipeline(command const& first, Commands const&... rest) {
    add(first);
    (add(rest), ...);
  }

  /// Adds a command at the end.
  pipeline& add(command const& c);

  [[nodiscard]] std::string_view wire() const noexcept { return bytes_.view(); }
  /// Gives the bytes away.
  [[nodiscard]] detail::wire_bytes release() && {
    count_ = 0;
    return std::move(bytes_);
  }
  /// Number of commands.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// The name of the first command that cannot share a connection; empty when there is none.
  [[nodiscard]] std::string_view refused() const noexcept { return refused_; }
  /// The first command's name, for messages.
  [[nodiscard]] command_name label() const noexcept { return label_; }
  /// True when one of the commands runs a script.
  [[nodiscard]] bool runs_script() const noexcept { return runs_script_; }

 private:
  detail::wire_bytes bytes_;
  std::string refused_;
  command_name label_;
  bool runs_script_ = false;
  detail::moving_count count_;
};

/// Commands that run as one MULTI..EXEC block, written in one piece: no other caller's command can come
/// between. Built like a `pipeline`; MULTI and EXEC are added by the client.
class transaction : public pipeline {
 public:
  using pipeline::pipeline;
};

/// True for commands that would change the state of a shared connection or block everybody behind them:
/// SUBSCRIBE and its kin, MONITOR, blocking reads (BLPOP, XREAD BLOCK, WAIT ...), raw MULTI/EXEC/WATCH,
/// SELECT, AUTH, HELLO, QUIT, RESET, READONLY, CLIENT REPLY and CLIENT TRACKING. Case does not matter.
[[nodiscard]] bool cannot_share_connection(command const& c) noexcept;

/// True for EVAL, EVALSHA, FCALL and their read-only forms.
[[nodiscard]] bool runs_script(std::string_view name) noexcept;

}  // namespace redoubt
