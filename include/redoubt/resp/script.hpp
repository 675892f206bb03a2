// SPDX-License-Identifier: BSL-1.0
//
// A Lua script with its SHA-1, and what it is called with.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <redoubt/resp/command.hpp>

namespace redoubt {

/// A Lua script. Cheap to copy (copies share the text); make it once, not per call. Thread-safe to read.
class script {
 public:
  /// `body` is the Lua source; its SHA-1 is computed here, so that a call can be EVALSHA first.
  explicit script(std::string body);

  [[nodiscard]] std::string const& body() const noexcept { return data_->body; }
  /// 40 lower-case hexadecimal digits.
  [[nodiscard]] std::string const& sha1() const noexcept { return data_->sha1; }

 private:
  struct data {
    std::string body;
    std::string sha1;
  };
  std::shared_ptr<data const> data_;
};

namespace detail {

/// Encoded arguments with their number. The constructor form is safe inside `co_await`, a braced list is not.
class argument_list {
 public:
  argument_list() = default;

  template <command_argument... Args>
  void append(Args const&... values) {
    (texts_.push_back(text_of(values)), ...);
  }

  [[nodiscard]] std::vector<std::string> const& texts() const noexcept { return texts_; }

 private:
  template <class T>
  static std::string text_of(T const& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return std::string(command("", value)[1]);
    } else {
      return std::string(std::string_view(value));
    }
  }

  std::vector<std::string> texts_;
};

}  // namespace detail

/// The keys of a script call. The client's `key_prefix` is put before each of them.
class keys : public detail::argument_list {
 public:
  template <command_argument... Args>
  explicit keys(Args const&... values) {
    append(values...);
  }
};

/// The arguments of a script call; passed as they are.
class args : public detail::argument_list {
 public:
  template <command_argument... Args>
  explicit args(Args const&... values) {
    append(values...);
  }
};

/// `EVALSHA sha1 numkeys key... arg...` or `EVAL body ...`, with `prefix` before each key.
[[nodiscard]] command eval_command(script const& s, keys const& k, args const& a, std::string_view prefix,
                                   bool by_sha1);

}  // namespace redoubt
