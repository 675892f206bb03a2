// SPDX-License-Identifier: BSL-1.0
#include "fake_lua.hpp"

#include <new>

#include <fmt/format.h>
#include <lua.hpp>

namespace redoubt::testing::detail {
namespace {

char engine_key;                                         // its address names the engine in the registry
constexpr char const* scripts_name = "redoubt.scripts";  // SHA-1 -> function
constexpr int hook_interval = 1000;

// Turns whatever was raised into {err=, source=, line=}, as the handler of Redis does.
int on_error(lua_State* lua) {
  if (lua_type(lua, 1) != LUA_TTABLE) {
    lua_settop(lua, 1);
    lua_getglobal(lua, "tostring");
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);  // "nil" for nil
    lua_pushliteral(lua, "ERR ");
    lua_insert(lua, 1);
    lua_concat(lua, 2);
    lua_newtable(lua);
    lua_insert(lua, 1);
    lua_setfield(lua, 1, "err");
  }
  lua_Debug where;
  bool known = lua_getstack(lua, 1, &where) != 0;
  if (known) lua_getinfo(lua, "Sl", &where);
  if (known && *where.what == 'C') {
    known = lua_getstack(lua, 2, &where) != 0;
    if (known) lua_getinfo(lua, "Sl", &where);
  }
  if (known) {
    lua_pushstring(lua, where.source);
    lua_setfield(lua, 1, "source");
    lua_pushinteger(lua, where.currentline);
    lua_setfield(lua, 1, "line");
  }
  return 1;
}

// Stops a script that does not end. From then on it is raised at each instruction, so that no pcall can keep
// it alive.
void on_count(lua_State* lua, lua_Debug*) {
  auto& engine = script_engine::of(lua);
  engine.running().instructions += hook_interval;
  if (engine.running().instructions <= engine.instructions_max()) return;
  lua_sethook(lua, &on_count, LUA_MASKCOUNT, 1);
  lua_pushliteral(lua, "The script ran past the instruction limit of the fake server");
  lua_error(lua);
}

std::string field(lua_State* lua, char const* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  std::size_t size = 0;
  char const* const text = lua_tolstring(lua, -1, &size);
  std::string out = text == nullptr ? std::string() : std::string(text, size);
  lua_pop(lua, 1);
  return out;
}

// The error line for the table on top of the stack.
std::string error_line(lua_State* lua, std::string const& sha1) {
  auto line = field(lua, "err");
  if (line.empty()) line = "ERR unknown error";
  auto const source = field(lua, "source");
  if (!source.empty()) line += fmt::format(" script: {}, on {}:{}.", sha1, source, field(lua, "line"));
  return line;
}

}  // namespace

script_engine::script_engine(core& server) : server_(server), lua_(luaL_newstate()) {
  if (lua_ == nullptr) throw std::bad_alloc();
  lua_pushlightuserdata(lua_, &engine_key);
  lua_pushlightuserdata(lua_, this);
  lua_rawset(lua_, LUA_REGISTRYINDEX);
  lua_newtable(lua_);
  lua_setfield(lua_, LUA_REGISTRYINDEX, scripts_name);
  open_sandbox(lua_);
}

script_engine::~script_engine() { lua_close(lua_); }

script_engine& script_engine::of(lua_State* lua) {
  lua_pushlightuserdata(lua, &engine_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto* const engine = static_cast<script_engine*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *engine;
}

std::string script_engine::load(std::string const& sha1, std::string_view body) {
  lua_settop(lua_, 0);
  if (body.starts_with("#!")) return "ERR the fake server has no scripts with a #! line";
  if (luaL_loadbuffer(lua_, body.data(), body.size(), "@user_script") != 0) {
    return fmt::format("ERR Error compiling script (new function): {}", lua_tostring(lua_, -1));
  }
  lua_getfield(lua_, LUA_REGISTRYINDEX, scripts_name);
  lua_insert(lua_, 1);
  lua_setfield(lua_, 1, sha1.c_str());
  return {};
}

void script_engine::set_words(char const* name, arguments const& words, std::size_t first, std::size_t last) {
  lua_getfield(lua_, LUA_REGISTRYINDEX, globals_name);
  lua_newtable(lua_);
  for (auto i = first; i < last; ++i) {
    lua_pushlstring(lua_, words[i].data(), words[i].size());
    lua_rawseti(lua_, -2, static_cast<int>(i - first + 1));
  }
  lua_setfield(lua_, -2, name);
  lua_pop(lua_, 1);
}

void script_engine::run(call& c, std::string const& sha1, std::size_t first_key, std::size_t keys,
                        bool read_only) {
  // A SELECT inside the script does not outlive it.
  session_state client(c.client.id, server_.options.argument_bytes_max);
  client.db = c.client.db;
  client.user = c.client.user;
  client.authenticated = c.client.authenticated;
  running_ = {.outer = &c, .client = &client, .read_only = read_only};

  lua_settop(lua_, 0);
  set_words("KEYS", c.args, first_key, first_key + keys);
  set_words("ARGV", c.args, first_key + keys, c.args.size());
  lua_pushcfunction(lua_, &on_error);
  lua_getfield(lua_, LUA_REGISTRYINDEX, scripts_name);
  lua_getfield(lua_, -1, sha1.c_str());
  lua_remove(lua_, -2);
  lua_sethook(lua_, &on_count, LUA_MASKCOUNT, hook_interval);
  int const status = lua_pcall(lua_, 0, 1, 1);
  lua_sethook(lua_, nullptr, 0, 0);
  running_ = {};

  if (status == 0) {
    write_value(lua_, c.out);
  } else if (lua_istable(lua_, -1)) {
    c.out.error(error_line(lua_, sha1));
  } else {
    // The handler itself failed, or memory ran out.
    auto const* const text = lua_tostring(lua_, -1);
    c.out.error(
        fmt::format("ERR Error running script {}, {}", sha1, text == nullptr ? "execution failure" : text));
  }
  lua_settop(lua_, 0);
}

std::string script_engine::command(arguments const& args) {
  auto& now = running_;
  reply_writer refusal;
  std::string unknown;
  auto const* const spec = find_command(args, unknown);
  if (spec == nullptr) {
    refusal.error("ERR Unknown Redis command called from script");
    return refusal.take();
  }
  if (!arity_fits(*spec, args.size())) {
    refusal.error("ERR Wrong number of args calling Redis command from script");
    return refusal.take();
  }
  if (auto const error = judge_in_script(server_, *now.client, *spec, args, now.read_only, now.wrote);
      !error.empty()) {
    refusal.error(error);
    return refusal.take();
  }
  now.wrote = now.wrote || (spec->flags & flag::write) != 0;
  call inner{server_, *now.client, args, *spec, now.outer->now, {}, true};
  spec->run(inner);
  return inner.out.take();
}

}  // namespace redoubt::testing::detail
