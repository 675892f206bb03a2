// SPDX-License-Identifier: BSL-1.0
//
// Commands about the server: as much of them as clients and tests ask for.
#include <fmt/format.h>

#include <redoubt/core/random.hpp>

#include "fake_commands.hpp"

namespace redoubt::testing::detail::commands {
namespace {

std::string run_id(std::uint64_t seed) {
  random_source random(seed);
  return fmt::format("{:016x}{:016x}{:08x}", random(), random(), random() >> 32);
}

std::string keyspace_lines(call& c) {
  std::string out;
  for (int db = 0; db < c.server.data.databases(); ++db) {
    auto const size = c.server.data.keys(db, c.ms()).size();
    if (size == 0) continue;
    out += fmt::format("db{}:keys={},expires={},avg_ttl=0\r\n", db, size, c.server.data.expiring(db, c.ms()));
  }
  return out;
}

std::string section(call& c, std::string_view name) {
  auto const& state = c.server.state;
  if (name == "server") {
    return fmt::format("# Server\r\nredis_version:7.0.15\r\nredis_mode:{}\r\nrun_id:{}\r\n",
                       state.cluster_without_slots ? "cluster" : "standalone", run_id(c.server.options.seed));
  }
  if (name == "clients")
    return fmt::format("# Clients\r\nconnected_clients:{}\r\n", c.server.sessions.size());
  if (name == "memory") {
    return fmt::format("# Memory\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n", c.server.config.at("maxmemory"),
                       c.server.config.at("maxmemory-policy"));
  }
  if (name == "persistence") {
    return fmt::format("# Persistence\r\nloading:{}\r\nrdb_last_bgsave_status:{}\r\n", state.loading ? 1 : 0,
                       state.snapshots_fail ? "err" : "ok");
  }
  if (name == "stats") {
    return fmt::format("# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n",
                       c.server.last_session, c.server.commands);
  }
  if (name == "replication") {
    return state.replica ? fmt::format("# Replication\r\nrole:slave\r\nmaster_link_status:{}\r\n",
                                       state.primary_lost ? "down" : "up")
                         : "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
  }
  if (name == "keyspace") return "# Keyspace\r\n" + keyspace_lines(c);
  return {};
}

}  // namespace

void info(call& c) {
  constexpr std::string_view all[] = {"server", "clients",     "memory",  "persistence",
                                      "stats",  "replication", "keyspace"};
  std::string text;
  auto const add = [&](std::string_view name) {
    auto part = section(c, name);
    if (part.empty()) return;
    if (!text.empty()) text += "\r\n";
    text += part;
  };
  for (std::size_t i = 1; i < c.args.size(); ++i) {
    auto const name = lower(c.args[i]);
    bool const whole = name == "all" || name == "default" || name == "everything";
    if (!whole) add(name);
    for (auto const each : all) {
      if (whole) add(each);
    }
  }
  for (auto const each : all) {
    if (c.args.size() == 1) add(each);
  }
  c.out.bulk(text);
}

void time(call& c) {
  auto const ns = c.server.unix_ns(c.now);
  c.out.array(2);
  c.out.bulk(std::to_string(ns / 1'000'000'000));
  c.out.bulk(std::to_string(ns / 1'000 % 1'000'000));
}

void config_get(call& c) {
  std::vector<std::pair<std::string, std::string>> found;
  for (auto const& [name, text] : c.server.config) {
    for (std::size_t i = 2; i < c.args.size(); ++i) {
      if (!glob_matches(lower(c.args[i]), name)) continue;
      found.emplace_back(name, text);
      break;
    }
  }
  c.out.array(found.size() * 2);
  for (auto const& [name, text] : found) {
    c.out.bulk(name);
    c.out.bulk(text);
  }
}

// Values are kept and given back. Only `requirepass` and `maxclients` have an effect; bad states are set by
// name.
void config_set(call& c) {
  if (c.args.size() % 2 != 0) return c.syntax_error();
  for (std::size_t i = 2; i < c.args.size(); i += 2) {
    if (!c.server.config.contains(lower(c.args[i]))) {
      return c.out.error(
          fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{}'", c.args[i]));
    }
  }
  for (std::size_t i = 2; i < c.args.size(); i += 2) {
    auto const name = lower(c.args[i]);
    auto const& text = c.args[i + 1];
    c.server.config[name] = text;
    if (name == "requirepass") {
      auto& user = c.server.users.at("default");
      user.password = text;
      user.needs_password = !text.empty();
    } else if (name == "maxclients") {
      if (auto const most = parse_integer(text); most && *most > 0) {
        c.server.options.clients_max = static_cast<std::size_t>(*most);
      }
    }
  }
  c.out.ok();
}

void replicaof(call& c) {
  if (is_word(c.args[1], "no") && is_word(c.args[2], "one")) {
    c.server.state.replica = false;
    c.server.state.primary_lost = false;
    return c.out.ok();
  }
  auto const port = parse_integer(c.args[2]);
  if (!port || *port < 0 || *port > 65535) return c.out.error("ERR Invalid master port");
  c.server.state.replica = true;
  c.out.ok();
}

void role(call& c) {
  if (!c.server.state.replica) {
    c.out.array(3);
    c.out.bulk("master");
    c.out.integer(0);
    return c.out.array(0);
  }
  c.out.array(5);
  c.out.bulk("slave");
  c.out.bulk("127.0.0.1");
  c.out.integer(6379);
  c.out.bulk(c.server.state.primary_lost ? "connect" : "connected");
  c.out.integer(c.server.state.primary_lost ? -1 : 0);
}

}  // namespace redoubt::testing::detail::commands
