// SPDX-License-Identifier: BSL-1.0
//
// What scripts may touch. Redis carries a Lua with read-only tables; the same is reached here with an
// ordinary Lua by giving scripts an empty table in the place of each protected one, which reads through and
// refuses writes. The one visible difference: `pairs` over a protected table (_G, string, redis ...) finds
// nothing.
#include <lua.hpp>

#include "fake_lua.hpp"

namespace redoubt::testing::detail {
namespace {

constexpr char const* protected_name = "redoubt.protected";  // set of the protected tables

int refuse_write(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

int read_global(lua_State* lua) {
  lua_pushvalue(lua, 2);
  lua_rawget(lua, lua_upvalueindex(1));
  if (!lua_isnil(lua, -1)) return 1;
  char const* const name = lua_tostring(lua, 2);
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    name == nullptr ? "?" : name);
}

// Replaces the table on top of the stack by its protected face. `strict`: reading what is not there is an
// error.
void protect(lua_State* lua, bool strict) {
  lua_newtable(lua);  // the face
  lua_newtable(lua);  // its metatable
  lua_pushvalue(lua, -3);
  if (strict) lua_pushcclosure(lua, &read_global, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, &refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_pushliteral(lua, "protected");
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_getfield(lua, LUA_REGISTRYINDEX, protected_name);
  lua_pushvalue(lua, -2);
  lua_pushboolean(lua, 1);
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
  lua_remove(lua, -2);
}

// rawset and setmetatable would go round the protection.
int refuse_protected(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, protected_name);
  lua_pushvalue(lua, 1);
  lua_rawget(lua, -2);
  bool const is_protected = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 2);
  if (is_protected) {
    lua_pushliteral(lua, "Attempt to modify a readonly table");
    return lua_error(lua);
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

// pcall of Redis: an error table becomes its text.
int pcall_with_text(lua_State* lua) {
  luaL_checkany(lua, 1);
  int const status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  if (status != 0 && lua_istable(lua, -1)) {
    lua_getfield(lua, -1, "err");
    if (lua_isstring(lua, -1) != 0) {
      lua_replace(lua, -2);
    } else {
      lua_pop(lua, 1);
    }
  }
  lua_pushboolean(lua, status == 0 ? 1 : 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

void open(lua_State* lua, char const* name, lua_CFunction library) {
  lua_pushcfunction(lua, library);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

void guard(lua_State* lua, char const* name) {
  lua_getglobal(lua, name);
  lua_pushcclosure(lua, &refuse_protected, 1);
  lua_setglobal(lua, name);
}

}  // namespace

void open_sandbox(lua_State* lua) {
  open(lua, "", &luaopen_base);
  open(lua, LUA_TABLIBNAME, &luaopen_table);
  open(lua, LUA_STRLIBNAME, &luaopen_string);
  open(lua, LUA_MATHLIBNAME, &luaopen_math);
  open_redis_library(lua);
  for (char const* const name :
       {"print", "dofile", "loadfile", "getfenv", "setfenv", "newproxy", "module", "require"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }

  lua_newtable(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, protected_name);
  guard(lua, "rawset");
  guard(lua, "setmetatable");
  lua_pushcfunction(lua, &pcall_with_text);
  lua_setglobal(lua, "pcall");
  for (char const* const name : {LUA_TABLIBNAME, LUA_STRLIBNAME, LUA_MATHLIBNAME, LUA_COLIBNAME, "redis"}) {
    lua_getglobal(lua, name);
    protect(lua, false);
    lua_setglobal(lua, name);
  }

  // The face of the globals takes their place, for code that a script loads as well.
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_setfield(lua, LUA_REGISTRYINDEX, globals_name);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  protect(lua, true);
  lua_pushvalue(lua, -1);
  lua_setglobal(lua, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
}

}  // namespace redoubt::testing::detail
