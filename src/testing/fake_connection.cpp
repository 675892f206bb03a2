// SPDX-License-Identifier: BSL-1.0
//
// Commands about the connection itself.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "fake_commands.hpp"

namespace redoubt::testing::detail::commands {
namespace {

// Makes the session this user's; false, with the error written, when name or password are wrong.
bool log_in(call& c, std::string_view name, std::string_view password) {
  auto const found = c.server.users.find(name);
  bool const right = found != c.server.users.end() && found->second.enabled &&
                     (!found->second.needs_password || found->second.password == password);
  if (!right) {
    c.out.error("WRONGPASS invalid username-password pair or user is disabled.");
    return false;
  }
  c.client.user = found->first;
  c.client.authenticated = true;
  return true;
}

bool rename_client(call& c, std::string const& name) {
  if (std::any_of(name.begin(), name.end(), [](char ch) { return ch < '!' || ch > '~'; })) {
    c.out.error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  c.client.name = name;
  return true;
}

}  // namespace

void ping(call& c) {
  if (c.args.size() > 2) return c.out.error(arity_error(c.spec));
  if (c.args.size() == 2) return c.out.bulk(c.args[1]);
  c.out.status("PONG");
}

void echo(call& c) { c.out.bulk(c.args[1]); }

void select(call& c) {
  auto const db = parse_integer(c.args[1]);
  if (!db) return c.out.error("ERR value is not an integer or out of range");
  if (c.server.state.cluster_without_slots && *db != 0) {
    return c.out.error("ERR SELECT is not allowed in cluster mode");
  }
  if (*db < 0 || *db >= c.server.data.databases()) return c.out.error("ERR DB index is out of range");
  c.client.db = static_cast<int>(*db);
  c.out.ok();
}

void auth(call& c) {
  if (c.args.size() > 3) return c.syntax_error();
  bool const named = c.args.size() == 3;
  if (!named && !c.server.users.at("default").needs_password) {
    return c.out.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  if (log_in(c, named ? c.args[1] : "default", c.args.back())) c.out.ok();
}

// Redis 7.0 also speaks RESP3. This server does not, and says so as an older one would.
void hello(call& c) {
  if (c.args.size() > 1) {
    auto const version = parse_integer(c.args[1]);
    if (!version) return c.out.error("ERR Protocol version is not an integer or out of range");
    if (*version != 2) return c.out.error("NOPROTO unsupported protocol version");
  }
  std::string const* name = nullptr;
  for (std::size_t i = 2; i < c.args.size(); ++i) {
    if (is_word(c.args[i], "auth") && i + 2 < c.args.size()) {
      if (!log_in(c, c.args[i + 1], c.args[i + 2])) return;
      i += 2;
    } else if (is_word(c.args[i], "setname") && i + 1 < c.args.size()) {
      name = &c.args[++i];
    } else {
      return c.out.error(fmt::format("ERR Syntax error in HELLO option '{}'", c.args[i]));
    }
  }
  if (!c.client.authenticated && c.server.needs_auth()) {
    return c.out.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (name != nullptr && !rename_client(c, *name)) return;
  c.out.array(14);
  c.out.bulk("server");
  c.out.bulk("redis");
  c.out.bulk("version");
  c.out.bulk("7.0.15");
  c.out.bulk("proto");
  c.out.integer(2);
  c.out.bulk("id");
  c.out.integer(static_cast<std::int64_t>(c.client.id));
  c.out.bulk("mode");
  c.out.bulk(c.server.state.cluster_without_slots ? "cluster" : "standalone");
  c.out.bulk("role");
  c.out.bulk(c.server.state.replica ? "replica" : "master");
  c.out.bulk("modules");
  c.out.array(0);
}

void quit(call& c) {
  c.client.closing = true;
  c.out.ok();
}

void client_setname(call& c) {
  if (rename_client(c, c.args[2])) c.out.ok();
}

void client_getname(call& c) {
  if (c.client.name.empty()) return c.out.nil();
  c.out.bulk(c.client.name);
}

void client_id(call& c) { c.out.integer(static_cast<std::int64_t>(c.client.id)); }

void client_pause(call& c) {
  if (c.args.size() > 4) {
    return c.out.error(fmt::format(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.", c.args[1]));
  }
  bool const all = c.args.size() == 3 || is_word(c.args[3], "all");
  if (!all && !is_word(c.args[3], "write")) return c.out.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  auto const ms = parse_integer(c.args[2]);
  if (!ms) return c.out.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return c.out.error("ERR timeout is negative");
  // A pause in force is never shortened or weakened by another.
  constexpr std::int64_t a_century = 3'155'760'000'000;
  auto const until = saturating_add(c.now, std::chrono::milliseconds(std::min(*ms, a_century)));
  auto& state = c.server.state;
  bool const in_force = state.held_until && *state.held_until > c.now;
  state.hold_all = all || (in_force && state.hold_all);
  state.held_until = in_force ? std::max(*state.held_until, until) : until;
  c.out.ok();
}

void client_unpause(call& c) {
  // The pause is over as of now; what it held runs as soon as time is looked at, which is right after this.
  if (c.server.state.held_until) c.server.state.held_until = c.now;
  c.out.ok();
}

}  // namespace redoubt::testing::detail::commands
