// SPDX-License-Identifier: BSL-1.0
//
// Whether a command may run: the checks of Redis in the order of Redis, which decides the error when several
// apply.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "fake_commands.hpp"
#include "fake_core.hpp"
#include "fake_lua.hpp"

namespace redoubt::testing::detail {
namespace {

constexpr std::string_view oom_error = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view misconf_error = "MISCONF Redis is configured to save RDB snapshots, but it's "
                                           "currently unable to persist to disk. Commands that may "
                                           "modify the data set are disabled, because this instance is "
                                           "configured to report errors during writes if RDB "
                                           "snapshotting fails (stop-writes-on-bgsave-error option). Please "
                                           "check the Redis logs for details about the RDB "
                                           "error.";
constexpr std::string_view noreplicas_error = "NOREPLICAS Not enough good replicas to write.";
constexpr std::string_view readonly_error = "READONLY You can't write against a read only replica.";
constexpr std::string_view loading_error = "LOADING Redis is loading the dataset in memory";
constexpr std::string_view busy_error =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

// What a command is, EXEC counting as all that it would run.
struct traits {
  bool write = false;
  bool denyoom = false;
  bool stale = true;
  bool loading = true;
  bool held_by_write_pause = false;

  void add(unsigned flags) noexcept {
    write = write || (flags & flag::write) != 0;
    denyoom = denyoom || (flags & flag::denyoom) != 0;
    stale = stale && (flags & flag::stale) != 0;
    loading = loading && (flags & flag::loading) != 0;
    held_by_write_pause = held_by_write_pause || (flags & (flag::write | flag::may_replicate)) != 0;
  }
};

bool is(command_spec const& spec, void (*run)(call&)) noexcept { return spec.run == run; }

enum class right : unsigned char { enough, no_command, no_key };

right rights_of(core const& server, session_state const& client, command_spec const& spec,
                arguments const& args) {
  auto const found = server.users.find(client.user);
  if (found == server.users.end()) return right::enough;
  auto const& user = found->second;
  if (user.refused.contains(spec.name)) return right::no_command;
  auto const keys = key_positions(spec, args);
  bool const fine =
      std::all_of(keys.begin(), keys.end(), [&](auto i) { return args[i].starts_with(user.key_prefix); });
  return fine ? right::enough : right::no_key;
}

std::string_view refused_by_state(core const& server, session_state const& client, command_spec const& spec,
                                  arguments const& args, traits const& t) {
  auto const& state = server.state;
  if (state.cluster_without_slots && !key_positions(spec, args).empty()) {
    return "CLUSTERDOWN Hash slot not served";
  }
  bool const ends_transaction =
      is(spec, &commands::exec) || is(spec, &commands::discard) || is(spec, &commands::quit);
  bool const grows = t.denyoom || (client.in_transaction && !ends_transaction);
  if (state.full && !state.busy && grows) return oom_error;
  if (state.snapshots_fail && (t.write || is(spec, &commands::ping))) return misconf_error;
  if (state.too_few_replicas && !state.replica && t.write) return noreplicas_error;
  if (state.replica && t.write) return readonly_error;
  if (state.replica && state.primary_lost && !t.stale) return masterdown_error;
  if (state.loading && !t.loading) return loading_error;
  if (state.busy && (spec.flags & flag::allow_busy) == 0) return busy_error;
  return {};
}

}  // namespace

judgement judge(core& server, session_state& client, command_spec const& spec, arguments const& args) {
  traits t;
  t.add(spec.flags);
  bool const exec = is(spec, &commands::exec);
  if (exec) {
    for (auto const& queued : client.queue) t.add(queued.spec->flags);
  }

  std::string error;
  if (server.needs_auth() && !client.authenticated && (spec.flags & flag::no_auth) == 0) {
    error = "NOAUTH Authentication required.";
  } else if (auto const rights = rights_of(server, client, spec, args); rights == right::no_command) {
    error = fmt::format("NOPERM this user has no permissions to run the '{}' command", spec.name);
  } else if (rights == right::no_key) {
    error = "NOPERM this user has no permissions to access one of the keys used as arguments";
  } else {
    error = refused_by_state(server, client, spec, args, t);
  }
  if (!error.empty()) {
    client.spoiled = client.in_transaction;
    if (exec) {
      discard_transaction(client);
      error = "EXECABORT Transaction discarded because of: " + error;
    }
    return {judgement::verdict::refuse, error};
  }
  bool const hold = server.state.held_until && (server.state.hold_all || t.held_by_write_pause);
  return {hold ? judgement::verdict::hold : judgement::verdict::run, {}};
}

std::string judge_in_script(core const& server, session_state const& client, command_spec const& spec,
                            arguments const& args, bool read_only, bool wrote) {
  auto const& state = server.state;
  bool const write = (spec.flags & flag::write) != 0;
  if ((spec.flags & flag::noscript) != 0) return "ERR This Redis command is not allowed from script";
  auto const rights = rights_of(server, client, spec, args);
  if (rights == right::no_command) {
    return "ERR The user executing the script can't run this command or subcommand";
  }
  if (rights == right::no_key) {
    return "ERR The user executing the script can't access at least one of the keys mentioned in the command "
           "arguments";
  }
  if (read_only && write) return "ERR Write commands are not allowed from read-only scripts.";
  // Once a script has written, Redis lets it go on: it could not be undone.
  if (write && !wrote) {
    if (state.replica) return std::string(readonly_error);
    if (state.snapshots_fail) return std::string(misconf_error);
    if (state.too_few_replicas) return std::string(noreplicas_error);
  }
  if (state.full && !wrote && (spec.flags & flag::denyoom) != 0) return std::string(oom_error);
  if (state.cluster_without_slots && !key_positions(spec, args).empty()) {
    return "ERR Script attempted to access a non local key in a cluster node";
  }
  return {};
}

void execute(call& c, std::uint64_t logged) {
  bool const at_once = is(c.spec, &commands::exec) || is(c.spec, &commands::discard) ||
                       is(c.spec, &commands::multi) || is(c.spec, &commands::watch) ||
                       is(c.spec, &commands::quit);
  if (c.client.in_transaction && !at_once) {
    c.client.queue.push_back({c.args, &c.spec, logged});
    c.out.status("QUEUED");
    return;
  }
  ++c.server.commands;
  c.server.executed.push_back(logged);
  c.spec.run(c);
}

std::optional<std::int64_t> call::integer(std::size_t i) {
  auto const number = parse_integer(args[i]);
  if (!number) out.error("ERR value is not an integer or out of range");
  return number;
}

core::core(fake_server_options o) : options(std::move(o)), data(std::max(options.databases, 1)) {
  users["default"].needs_password = false;
  config = {{"appendonly", "no"},
            {"busy-reply-threshold", "5000"},
            {"databases", std::to_string(options.databases)},
            {"maxclients", std::to_string(options.clients_max)},
            {"maxmemory", "0"},
            {"maxmemory-policy", "noeviction"},
            {"min-replicas-to-write", "0"},
            {"replica-serve-stale-data", "yes"},
            {"requirepass", ""},
            {"save", ""},
            {"timeout", "0"}};
}

core::~core() = default;

std::int64_t core::unix_ns(time_point now) const noexcept {
  return (options.unix_time_at_zero + std::chrono::duration_cast<duration>(now.time_since_epoch())).count();
}

std::int64_t core::unix_ms(time_point now) const noexcept { return unix_ns(now) / 1'000'000; }

bool core::needs_auth() const {
  auto const& user = users.at("default");
  return user.needs_password || !user.enabled;
}

void core::reset() {
  data.clear();
  state = {};
  scripts.clear();
  engine.reset();
  script_random = first_script_random;
}

}  // namespace redoubt::testing::detail
