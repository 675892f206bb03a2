// SPDX-License-Identifier: BSL-1.0
//
// The Lua engine behind EVAL: a real Lua 5.1 in a sandbox like the one of Redis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fake_core.hpp"

struct lua_State;

namespace redoubt::testing::detail {

/// One Lua state with the functions of the scripts that are known. Lua reports errors by longjmp, which skips
/// destructors: code called from Lua leaves every C++ scope before it raises an error.
class script_engine {
 public:
  explicit script_engine(core& server);
  ~script_engine();
  script_engine(script_engine const&) = delete;
  script_engine& operator=(script_engine const&) = delete;

  /// Compiles a script and keeps it under its SHA-1. The error line when it does not compile, else empty.
  [[nodiscard]] std::string load(std::string const& sha1, std::string_view body);

  /// Runs a script that was loaded. The words from `first_key` on are `keys` keys, then arguments.
  void run(call& c, std::string const& sha1, std::size_t first_key, std::size_t keys, bool read_only);

  // --- For the functions that Lua calls
  // ----------------------------------------------------------------------

  /// What is known about the script that runs.
  struct current {
    call* outer = nullptr;
    session_state* client = nullptr;
    bool read_only = false;
    bool wrote = false;
    std::uint64_t instructions = 0;
  };
  [[nodiscard]] current& running() noexcept { return running_; }
  /// Runs one command for the script; the RESP reply, errors included.
  [[nodiscard]] std::string command(arguments const& args);
  /// The engine that a Lua state belongs to.
  [[nodiscard]] static script_engine& of(lua_State* lua);
  [[nodiscard]] std::uint64_t& random_state() noexcept { return server_.script_random; }
  [[nodiscard]] std::uint64_t instructions_max() const noexcept {
    return server_.options.script_instructions;
  }

 private:
  void set_words(char const* name, arguments const& words, std::size_t first, std::size_t last);

  core& server_;
  lua_State* lua_;
  current running_{};
};

/// Opens the libraries that scripts may use, adds `redis`, and closes everything else. fake_lua_sandbox.cpp
void open_sandbox(lua_State* lua);
/// Adds the table `redis` to the globals. fake_lua_redis.cpp
void open_redis_library(lua_State* lua);
/// Puts the value of a RESP reply on the stack. fake_lua_values.cpp
void push_reply(lua_State* lua, std::string_view& resp);
/// Writes the value on top of the stack as a reply. fake_lua_values.cpp
void write_value(lua_State* lua, reply_writer& out);
/// Puts an error table for "CODE text" or "-CODE text" or "text" on the stack.
void push_error(lua_State* lua, std::string_view line);

/// The name under which the protected globals are kept in the registry.
inline constexpr char const* globals_name = "redoubt.globals";

}  // namespace redoubt::testing::detail
