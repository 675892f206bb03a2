// SPDX-License-Identifier: BSL-1.0
//
// The command table: words, flags and key positions as COMMAND INFO of Redis 7.0.15 gives them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fake_commands.hpp"
#include "fake_core.hpp"

namespace redoubt::testing::detail {
namespace {

constexpr unsigned w = flag::write;
constexpr unsigned wm = flag::write | flag::denyoom;
constexpr unsigned r = flag::readonly;
constexpr unsigned always = flag::loading | flag::stale;
constexpr unsigned connection = flag::noscript | always;
constexpr unsigned transaction = connection | flag::allow_busy;
constexpr unsigned entrance = connection | flag::allow_busy | flag::no_auth;
constexpr unsigned scripting = flag::noscript | flag::stale | flag::may_replicate | flag::counted_keys;
constexpr unsigned reading_script = flag::noscript | flag::stale | flag::counted_keys | flag::readonly;

// Sorted by name. A name without a function is a container of subcommands.
constexpr auto table = std::to_array<command_spec>({
    {"append", 3, wm, 1, 1, 1, &commands::append},
    {"auth", -2, entrance, 0, 0, 0, &commands::auth},
    {"client", -2, 0, 0, 0, 0, nullptr},
    {"client|getname", 2, connection, 0, 0, 0, &commands::client_getname},
    {"client|id", 2, connection, 0, 0, 0, &commands::client_id},
    {"client|pause", -3, connection, 0, 0, 0, &commands::client_pause},
    {"client|setname", 3, connection, 0, 0, 0, &commands::client_setname},
    {"client|unpause", 2, connection, 0, 0, 0, &commands::client_unpause},
    {"config", -2, 0, 0, 0, 0, nullptr},
    {"config|get", -3, connection, 0, 0, 0, &commands::config_get},
    {"config|set", -4, connection, 0, 0, 0, &commands::config_set},
    {"dbsize", 1, r, 0, 0, 0, &commands::dbsize},
    {"decr", 2, wm, 1, 1, 1, &commands::decr},
    {"decrby", 3, wm, 1, 1, 1, &commands::decrby},
    {"del", -2, w, 1, -1, 1, &commands::del},
    {"discard", 1, transaction, 0, 0, 0, &commands::discard},
    {"echo", 2, always, 0, 0, 0, &commands::echo},
    {"eval", -3, scripting, 0, 0, 0, &commands::eval},
    {"eval_ro", -3, reading_script, 0, 0, 0, &commands::eval},
    {"evalsha", -3, scripting, 0, 0, 0, &commands::evalsha},
    {"evalsha_ro", -3, reading_script, 0, 0, 0, &commands::evalsha},
    {"exec", 1, connection, 0, 0, 0, &commands::exec},
    {"exists", -2, r, 1, -1, 1, &commands::exists},
    {"expire", -3, w, 1, 1, 1, &commands::expire},
    {"expireat", -3, w, 1, 1, 1, &commands::expireat},
    {"expiretime", 2, r, 1, 1, 1, &commands::expiretime},
    {"flushall", -1, w, 0, 0, 0, &commands::flushall},
    {"flushdb", -1, w, 0, 0, 0, &commands::flushdb},
    {"get", 2, r, 1, 1, 1, &commands::get},
    {"getdel", 2, w, 1, 1, 1, &commands::getdel},
    {"getex", -2, w, 1, 1, 1, &commands::getex},
    {"getrange", 4, r, 1, 1, 1, &commands::getrange},
    {"getset", 3, wm, 1, 1, 1, &commands::getset},
    {"hdel", -3, w, 1, 1, 1, &commands::hdel},
    {"hello", -1, entrance, 0, 0, 0, &commands::hello},
    {"hexists", 3, r, 1, 1, 1, &commands::hexists},
    {"hget", 3, r, 1, 1, 1, &commands::hget},
    {"hgetall", 2, r, 1, 1, 1, &commands::hgetall},
    {"hincrby", 4, wm, 1, 1, 1, &commands::hincrby},
    {"hlen", 2, r, 1, 1, 1, &commands::hlen},
    {"hmget", -3, r, 1, 1, 1, &commands::hmget},
    {"hset", -4, wm, 1, 1, 1, &commands::hset},
    {"hsetnx", 4, wm, 1, 1, 1, &commands::hsetnx},
    {"incr", 2, wm, 1, 1, 1, &commands::incr},
    {"incrby", 3, wm, 1, 1, 1, &commands::incrby},
    {"incrbyfloat", 3, wm, 1, 1, 1, &commands::incrbyfloat},
    {"info", -1, always, 0, 0, 0, &commands::info},
    {"keys", 2, r, 0, 0, 0, &commands::keys},
    {"llen", 2, r, 1, 1, 1, &commands::llen},
    {"lpop", -2, w, 1, 1, 1, &commands::lpop},
    {"lpush", -3, wm, 1, 1, 1, &commands::lpush},
    {"lrange", 4, r, 1, 1, 1, &commands::lrange},
    {"ltrim", 4, w, 1, 1, 1, &commands::ltrim},
    {"mget", -2, r, 1, -1, 1, &commands::mget},
    {"mset", -3, wm, 1, -1, 2, &commands::mset},
    {"msetnx", -3, wm, 1, -1, 2, &commands::msetnx},
    {"multi", 1, transaction, 0, 0, 0, &commands::multi},
    {"persist", 2, w, 1, 1, 1, &commands::persist},
    {"pexpire", -3, w, 1, 1, 1, &commands::pexpire},
    {"pexpireat", -3, w, 1, 1, 1, &commands::pexpireat},
    {"pexpiretime", 2, r, 1, 1, 1, &commands::pexpiretime},
    {"ping", -1, 0, 0, 0, 0, &commands::ping},
    {"psetex", 4, wm, 1, 1, 1, &commands::psetex},
    {"pttl", 2, r, 1, 1, 1, &commands::pttl},
    {"quit", -1, entrance, 0, 0, 0, &commands::quit},
    {"randomkey", 1, r, 0, 0, 0, &commands::randomkey},
    {"rename", 3, w, 1, 2, 1, &commands::rename},
    {"replicaof", 3, flag::noscript | flag::stale, 0, 0, 0, &commands::replicaof},
    {"role", 1, connection, 0, 0, 0, &commands::role},
    {"rpop", -2, w, 1, 1, 1, &commands::rpop},
    {"rpush", -3, wm, 1, 1, 1, &commands::rpush},
    {"scan", -2, r, 0, 0, 0, &commands::scan},
    {"script", -2, 0, 0, 0, 0, nullptr},
    {"script|exists", -3, flag::noscript, 0, 0, 0, &commands::script_exists},
    {"script|flush", -2, flag::noscript, 0, 0, 0, &commands::script_flush},
    {"script|kill", 2, flag::noscript | flag::allow_busy, 0, 0, 0, &commands::script_kill},
    {"script|load", 3, flag::noscript | flag::stale, 0, 0, 0, &commands::script_load},
    {"select", 2, always, 0, 0, 0, &commands::select},
    {"set", -3, wm, 1, 1, 1, &commands::set},
    {"setex", 4, wm, 1, 1, 1, &commands::setex},
    {"setnx", 3, wm, 1, 1, 1, &commands::setnx},
    {"strlen", 2, r, 1, 1, 1, &commands::strlen},
    {"time", 1, always, 0, 0, 0, &commands::time},
    {"touch", -2, r, 1, -1, 1, &commands::exists},
    {"ttl", 2, r, 1, 1, 1, &commands::ttl},
    {"type", 2, r, 1, 1, 1, &commands::type},
    {"unlink", -2, w, 1, -1, 1, &commands::del},
    {"unwatch", 1, transaction, 0, 0, 0, &commands::unwatch},
    {"watch", -2, transaction, 1, -1, 1, &commands::watch},
    {"zadd", -4, wm, 1, 1, 1, &commands::zadd},
    {"zcard", 2, r, 1, 1, 1, &commands::zcard},
    {"zcount", 4, r, 1, 1, 1, &commands::zcount},
    {"zincrby", 4, wm, 1, 1, 1, &commands::zincrby},
    {"zmscore", -3, r, 1, 1, 1, &commands::zmscore},
    {"zpopmax", -2, w, 1, 1, 1, &commands::zpopmax},
    {"zpopmin", -2, w, 1, 1, 1, &commands::zpopmin},
    {"zrange", -4, r, 1, 1, 1, &commands::zrange},
    {"zrangebyscore", -4, r, 1, 1, 1, &commands::zrangebyscore},
    {"zrank", 3, r, 1, 1, 1, &commands::zrank},
    {"zrem", -3, w, 1, 1, 1, &commands::zrem},
    {"zremrangebyrank", 4, w, 1, 1, 1, &commands::zremrangebyrank},
    {"zremrangebyscore", 4, w, 1, 1, 1, &commands::zremrangebyscore},
    {"zrevrange", -4, r, 1, 1, 1, &commands::zrevrange},
    {"zrevrangebyscore", -4, r, 1, 1, 1, &commands::zrevrangebyscore},
    {"zrevrank", 3, r, 1, 1, 1, &commands::zrevrank},
    {"zscore", 3, r, 1, 1, 1, &commands::zscore},
});

static_assert(std::is_sorted(table.begin(), table.end(),
                             [](command_spec const& a, command_spec const& b) { return a.name < b.name; }));

command_spec const* row(std::string_view name) noexcept {
  auto const found =
      std::lower_bound(table.begin(), table.end(), name,
                       [](command_spec const& spec, std::string_view n) { return spec.name < n; });
  return found != table.end() && found->name == name ? &*found : nullptr;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

command_spec const* find_command(arguments const& args, std::string& unknown) {
  auto const name = lower(args[0]);
  auto const* const spec = name.find('|') == std::string::npos ? row(name) : nullptr;
  if (spec == nullptr) {
    std::string given;
    for (std::size_t i = 1; i < args.size() && given.size() < 128; ++i) {
      given += fmt::format("'{}' ", std::string_view(args[i]).substr(0, 128 - given.size()));
    }
    unknown = fmt::format("ERR unknown command '{}', with args beginning with: {}",
                          std::string_view(args[0]).substr(0, 128), given);
    return nullptr;
  }
  if (spec->run != nullptr || args.size() < 2) return spec;
  auto const* const sub = row(name + "|" + lower(args[1]));
  if (sub == nullptr) {
    unknown = fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                          std::string_view(args[1]).substr(0, 128), upper(name));
  }
  return sub;
}

bool arity_fits(command_spec const& spec, std::size_t words) noexcept {
  auto const least = static_cast<std::size_t>(spec.arity < 0 ? -spec.arity : spec.arity);
  return spec.arity < 0 ? words >= least : words == least;
}

std::string arity_error(command_spec const& spec) {
  return fmt::format("ERR wrong number of arguments for '{}' command", spec.name);
}

std::vector<std::size_t> key_positions(command_spec const& spec, arguments const& args) {
  std::vector<std::size_t> out;
  if ((spec.flags & flag::counted_keys) != 0) {
    auto const count = args.size() > 2 ? parse_integer(args[2]) : std::nullopt;
    for (std::size_t i = 3; count && static_cast<std::int64_t>(i) - 3 < *count && i < args.size(); ++i) {
      out.push_back(i);
    }
  } else if (spec.first_key > 0) {
    auto const last = spec.last_key < 0 ? args.size() - 1 : static_cast<std::size_t>(spec.last_key);
    auto const step = static_cast<std::size_t>(spec.key_step);
    for (auto i = static_cast<std::size_t>(spec.first_key); i <= last && i < args.size(); i += step) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace redoubt::testing::detail
