// SPDX-License-Identifier: BSL-1.0
//
// The table `redis` that scripts call, and the deterministic math.random of Redis.
//
// lua_error jumps over destructors. So each function that needs C++ objects is split: the inner one leaves
// its value or its error table on the stack and returns, the outer one raises.
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <lua.hpp>
#include <redoubt/resp/script.hpp>

#include "fake_lua.hpp"

namespace redoubt::testing::detail {
namespace {

// The words on the stack; nothing, with the error on the stack, when one is neither text nor number.
std::optional<arguments> words_on_stack(lua_State* lua) {
  int const count = lua_gettop(lua);
  if (count == 0) {
    push_error(lua, "ERR Please specify at least one argument for this redis lib call");
    return std::nullopt;
  }
  arguments out;
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      out.push_back(fmt::format("{:.17g}", lua_tonumber(lua, i)));
    } else if (lua_type(lua, i) == LUA_TSTRING) {
      std::size_t size = 0;
      char const* const text = lua_tolstring(lua, i, &size);
      out.emplace_back(text, size);
    } else {
      push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
      return std::nullopt;
    }
  }
  return out;
}

// Leaves the reply on the stack; false when it is an error.
bool run_command(lua_State* lua) {
  auto const words = words_on_stack(lua);
  if (!words) return false;
  auto const resp = script_engine::of(lua).command(*words);
  std::string_view rest = resp;
  push_reply(lua, rest);
  return !resp.starts_with('-');
}

// No reply of a command is nested deeper than this allows; checked before there is a C++ object to be jumped
// over.
void need_stack(lua_State* lua) { luaL_checkstack(lua, 40, "no room for a reply"); }

int redis_call(lua_State* lua) {
  need_stack(lua);
  if (run_command(lua)) return 1;
  return lua_error(lua);
}

int redis_pcall(lua_State* lua) {
  need_stack(lua);
  run_command(lua);
  return 1;
}

bool has_one_text(lua_State* lua) { return lua_gettop(lua) == 1 && lua_type(lua, -1) == LUA_TSTRING; }

int redis_error_reply(lua_State* lua) {
  if (!has_one_text(lua)) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  std::size_t size = 0;
  char const* const text = lua_tolstring(lua, -1, &size);
  push_error(lua, {text, size});
  return 1;
}

int redis_status_reply(lua_State* lua) {
  if (!has_one_text(lua)) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  lua_newtable(lua);
  lua_insert(lua, 1);
  lua_setfield(lua, 1, "ok");
  return 1;
}

int raise(lua_State* lua, char const* line) {
  push_error(lua, line);
  return lua_error(lua);
}

int redis_sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "ERR wrong number of arguments");
  std::size_t size = 0;
  char const* const text = lua_tolstring(lua, 1, &size);
  auto const hash = script(text == nullptr ? std::string() : std::string(text, size)).sha1();
  lua_pushlstring(lua, hash.data(), hash.size());
  return 1;
}

int redis_log(lua_State* lua) {
  if (lua_gettop(lua) < 2) return raise(lua, "ERR redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) return raise(lua, "ERR First argument must be a number (log level).");
  auto const level = lua_tonumber(lua, 1);
  if (level < 0 || level > 3) return raise(lua, "ERR Invalid debug level.");
  return 0;
}

int redis_setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "ERR redis.setresp() requires one argument.");
  auto const version = lua_tonumber(lua, 1);
  if (version != 2 && version != 3) return raise(lua, "ERR RESP version must be 2 or 3.");
  return 0;
}

int redis_replicate_commands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

int redis_set_repl(lua_State*) { return 0; }

// The 48-bit generator of POSIX, which Redis carries with it so that scripts draw the same numbers
// everywhere.
double draw(lua_State* lua) {
  auto& state = script_engine::of(lua).random_state();
  state = (state * 0x5DEECE66Du + 0xBu) & 0xFFFF'FFFF'FFFFu;
  constexpr std::int64_t max = 0x7FFF'FFFF;
  return static_cast<double>(static_cast<std::int64_t>(state >> 17) % max) / static_cast<double>(max);
}

int math_random(lua_State* lua) {
  double const drawn = draw(lua);
  switch (lua_gettop(lua)) {
    case 0: lua_pushnumber(lua, drawn); return 1;
    case 1: {
      auto const upper = luaL_checkinteger(lua, 1);
      luaL_argcheck(lua, 1 <= upper, 1, "interval is empty");
      lua_pushnumber(lua, std::floor(drawn * static_cast<double>(upper)) + 1);
      return 1;
    }
    case 2: {
      auto const lower = luaL_checkinteger(lua, 1);
      auto const upper = luaL_checkinteger(lua, 2);
      luaL_argcheck(lua, lower <= upper, 2, "interval is empty");
      auto const span = static_cast<double>(upper) - static_cast<double>(lower) + 1;
      lua_pushnumber(lua, std::floor(drawn * span) + static_cast<double>(lower));
      return 1;
    }
    default: return luaL_error(lua, "wrong number of arguments");
  }
}

int math_randomseed(lua_State* lua) {
  auto const seed = static_cast<std::uint64_t>(luaL_checkinteger(lua, 1));
  script_engine::of(lua).random_state() = ((seed << 16) & 0xFFFF'FFFF'FFFFu) + 0x330E;
  return 0;
}

void set_number(lua_State* lua, char const* name, int n) {
  lua_pushinteger(lua, n);
  lua_setfield(lua, -2, name);
}

}  // namespace

void open_redis_library(lua_State* lua) {
  constexpr luaL_Reg functions[] = {{"call", &redis_call},
                                    {"pcall", &redis_pcall},
                                    {"error_reply", &redis_error_reply},
                                    {"status_reply", &redis_status_reply},
                                    {"sha1hex", &redis_sha1hex},
                                    {"log", &redis_log},
                                    {"setresp", &redis_setresp},
                                    {"replicate_commands", &redis_replicate_commands},
                                    {"set_repl", &redis_set_repl},
                                    {nullptr, nullptr}};
  luaL_register(lua, "redis", functions);
  lua_pushliteral(lua, "7.0.15");
  lua_setfield(lua, -2, "REDIS_VERSION");
  set_number(lua, "REDIS_VERSION_NUM", 0x0007000F);
  set_number(lua, "LOG_DEBUG", 0);
  set_number(lua, "LOG_VERBOSE", 1);
  set_number(lua, "LOG_NOTICE", 2);
  set_number(lua, "LOG_WARNING", 3);
  set_number(lua, "REPL_NONE", 0);
  set_number(lua, "REPL_AOF", 1);
  set_number(lua, "REPL_SLAVE", 2);
  set_number(lua, "REPL_REPLICA", 2);
  set_number(lua, "REPL_ALL", 3);
  lua_pop(lua, 1);

  lua_getglobal(lua, "math");
  lua_pushcfunction(lua, &math_random);
  lua_setfield(lua, -2, "random");
  lua_pushcfunction(lua, &math_randomseed);
  lua_setfield(lua, -2, "randomseed");
  lua_pop(lua, 1);
}

}  // namespace redoubt::testing::detail
