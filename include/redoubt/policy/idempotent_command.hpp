// SPDX-License-Identifier: BSL-1.0
//
// A Redis command that may be sent again, checked by the compiler: `idempotent_command("INCR", key)` is
// refused.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <redoubt/resp/command.hpp>

namespace redoubt {

/// The name of a command that leaves the same data behind when it is executed twice. Made from a literal
/// only; a name that is not in the list does not compile.
class idempotent_name {
 public:
  consteval idempotent_name(char const* name) : name_(name) {  // NOLINT: implicit on purpose
    if (std::find(list.begin(), list.end(), name_) == list.end()) this_command_is_not_idempotent();
  }
  [[nodiscard]] constexpr std::string_view view() const noexcept { return name_; }

 private:
  // Not constexpr: that it is called during compilation is the error.
  static void this_command_is_not_idempotent() {}

  // ZADD is not in it because of its option INCR, nor anything that counts, pops, appends or draws lots.
  static constexpr std::array<std::string_view, 48> list{
      "PING",      "GET",           "MGET",      "GETRANGE", "STRLEN", "EXISTS", "TTL",     "PTTL",
      "TYPE",      "SET",           "SETEX",     "PSETEX",   "MSET",   "DEL",    "UNLINK",  "EXPIRE",
      "PEXPIRE",   "EXPIREAT",      "PEXPIREAT", "PERSIST",  "HGET",   "HMGET",  "HGETALL", "HEXISTS",
      "HLEN",      "HKEYS",         "HVALS",     "HSET",     "HMSET",  "HDEL",   "SADD",    "SREM",
      "SISMEMBER", "SMEMBERS",      "SCARD",     "SUNION",   "SINTER", "SDIFF",  "ZREM",    "ZSCORE",
      "ZRANGE",    "ZRANGEBYSCORE", "ZCARD",     "ZCOUNT",   "ZRANK",  "LRANGE", "LLEN",    "LINDEX"};

  std::string_view name_;
};

/// A command that may be executed more than once. The data end the same; a count in the answer may differ (a
/// second DEL deletes nothing), and a copy that is executed late may overwrite what somebody else wrote
/// meanwhile.
class idempotent_command {
 public:
  /// The command, upper case, with its arguments as for `command`. Throws `std::invalid_argument` for a SET
  /// with options: NX and GET answer differently the second time; SETEX and PSETEX set an expiry.
  template <class... Args>
  explicit idempotent_command(idempotent_name name, Args const&... arguments)
      : command_(name.view(), arguments...) {
    if (name.view() == "SET" && sizeof...(Args) != 2) refuse_set_with_options();
  }

  /// The caller's own declaration, for what the list does not know.
  [[nodiscard]] static idempotent_command declared(command cmd) { return idempotent_command(std::move(cmd)); }

  /// The command, moved out.
  [[nodiscard]] command take() && { return std::move(command_); }

 private:
  explicit idempotent_command(command cmd) : command_(std::move(cmd)) {}
  [[noreturn]] static void refuse_set_with_options();

  command command_;
};

}  // namespace redoubt
