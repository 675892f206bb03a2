// SPDX-License-Identifier: BSL-1.0
//
// Between RESP and Lua values, with the rules of Redis: a number loses its fraction, nil ends an array, false
// is nil.
#include <algorithm>
#include <charconv>
#include <limits>

#include <lua.hpp>

#include "fake_lua.hpp"

namespace redoubt::testing::detail {
namespace {

// A conversion that does not fit is undefined in C++; on the machines Redis runs on it gives the lowest
// number.
std::int64_t truncated(double number) noexcept {
  constexpr double limit = 9223372036854775808.0;
  return number >= -limit && number < limit ? static_cast<std::int64_t>(number)
                                            : std::numeric_limits<std::int64_t>::min();
}

// Pushes table[name] without metamethods; true when it is of the wanted type, else nothing stays on the
// stack.
bool push_field(lua_State* lua, char const* name, int type) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  if (lua_type(lua, -1) == type) return true;
  lua_pop(lua, 1);
  return false;
}

std::string_view text_at_top(lua_State* lua) {
  std::size_t size = 0;
  char const* const text = lua_tolstring(lua, -1, &size);
  return {text, size};
}

void write_table(lua_State* lua, reply_writer& out) {
  if (push_field(lua, "err", LUA_TSTRING)) {
    out.error(text_at_top(lua));
    lua_pop(lua, 1);
    return;
  }
  if (push_field(lua, "ok", LUA_TSTRING)) {
    out.status(text_at_top(lua));
    lua_pop(lua, 1);
    return;
  }
  if (push_field(lua, "double", LUA_TNUMBER)) {
    out.score(lua_tonumber(lua, -1));
    lua_pop(lua, 1);
    return;
  }
  reply_writer elements;
  std::size_t count = 0;
  for (;; ++count) {
    lua_rawgeti(lua, -1, static_cast<int>(count + 1));
    if (lua_isnil(lua, -1)) break;
    write_value(lua, elements);
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  out.array(count);
  out.raw(elements.bytes());
}

}  // namespace

void write_value(lua_State* lua, reply_writer& out) {
  if (lua_checkstack(lua, 4) == 0) return out.error("ERR reached lua stack limit");
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: return out.bulk(text_at_top(lua));
    case LUA_TNUMBER: return out.integer(truncated(lua_tonumber(lua, -1)));
    case LUA_TBOOLEAN: return lua_toboolean(lua, -1) != 0 ? out.integer(1) : out.nil();
    case LUA_TTABLE: return write_table(lua, out);
    default: return out.nil();
  }
}

void push_error(lua_State* lua, std::string_view line) {
  if (line.starts_with('-')) line.remove_prefix(1);
  // Without a code in front the text gets the general one.
  bool const coded = line.find(' ') != std::string_view::npos;
  lua_newtable(lua);
  if (!coded) lua_pushliteral(lua, "ERR ");
  lua_pushlstring(lua, line.data(), line.size());
  if (!coded) lua_concat(lua, 2);
  lua_setfield(lua, -2, "err");
}

void push_reply(lua_State* lua, std::string_view& resp) {
  char const type = resp.front();
  auto const line_end = resp.find("\r\n");
  auto const line = resp.substr(1, line_end - 1);
  resp.remove_prefix(line_end + 2);
  std::int64_t number = 0;
  if (type == ':' || type == '$' || type == '*')
    std::from_chars(line.data(), line.data() + line.size(), number);

  if (type == '-') {
    push_error(lua, line);
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, "ignore_error_stats_update");
  } else if (type == '+') {
    lua_newtable(lua);
    lua_pushlstring(lua, line.data(), line.size());
    lua_setfield(lua, -2, "ok");
  } else if (type == ':') {
    lua_pushnumber(lua, static_cast<lua_Number>(number));
  } else if (number < 0) {
    lua_pushboolean(lua, 0);
  } else if (type == '$') {
    lua_pushlstring(lua, resp.data(), static_cast<std::size_t>(number));
    resp.remove_prefix(static_cast<std::size_t>(number) + 2);
  } else {
    lua_newtable(lua);
    for (std::int64_t i = 1; i <= number; ++i) {
      push_reply(lua, resp);
      lua_rawseti(lua, -2, static_cast<int>(i));
    }
  }
}

}  // namespace redoubt::testing::detail
