// SPDX-License-Identifier: BSL-1.0
//
// What the commands of the fake server work on: the data, the state, the users and the sessions; and what a
// command is: a row of the table with its flags, and one call of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <redoubt/core/time.hpp>
#include <redoubt/testing/fake_server.hpp>

#include "fake_keyspace.hpp"
#include "fake_reply.hpp"
#include "fake_request.hpp"

namespace redoubt::testing::detail {

struct call;
class script_engine;

/// The properties of a command that decide in which states it runs; named as COMMAND names them.
namespace flag {
inline constexpr unsigned write = 1u << 0;
inline constexpr unsigned readonly = 1u << 1;
inline constexpr unsigned denyoom = 1u << 2;
inline constexpr unsigned noscript = 1u << 3;
inline constexpr unsigned loading = 1u << 4;  // runs while the data set is loaded
inline constexpr unsigned stale = 1u << 5;    // runs on a replica that lost its primary
inline constexpr unsigned no_auth = 1u << 6;  // runs before authentication
inline constexpr unsigned allow_busy = 1u << 7;
inline constexpr unsigned may_replicate = 1u << 8;  // held by CLIENT PAUSE .. WRITE though not a write
inline constexpr unsigned counted_keys = 1u << 9;   // EVAL: the second argument says how many keys follow
}  // namespace flag

/// A row of the command table.
struct command_spec {
  std::string_view name;  ///< Lower case; "client|setname" for a subcommand.
  int arity;              ///< Exact number of words, or the least when negative.
  unsigned flags;
  int first_key, last_key, key_step;  ///< Positions as COMMAND gives them; 0 for none.
  void (*run)(call&);
};

/// A user of the access control list.
struct user {
  std::string password{};
  bool needs_password = true;
  bool enabled = true;
  std::string key_prefix{};
  std::set<std::string, std::less<>> refused{};
};

/// What the named states of `fake_server` set.
struct server_state {
  bool killed = false;
  bool paused = false;
  bool replica = false;
  bool primary_lost = false;
  bool full = false;
  bool loading = false;
  bool busy = false;
  bool too_few_replicas = false;
  bool snapshots_fail = false;
  bool cluster_without_slots = false;
  std::optional<time_point> held_until{};  ///< CLIENT PAUSE
  bool hold_all = false;                   ///< ... ALL instead of WRITE
};

/// A command that waits for EXEC or for the end of CLIENT PAUSE, with its place in the log.
struct waiting_command {
  arguments args;
  command_spec const* spec = nullptr;
  std::uint64_t logged = 0;
};

/// A key under WATCH.
struct watched_key {
  int db;
  std::string key;
  bool was_missing;
};

/// One connection as the server sees it.
struct session_state {
  session_state(fake_server::session number, std::size_t argument_bytes_max)
      : id(number),
        input(argument_bytes_max) {}

  fake_server::session id;
  request_parser input;
  int db = 0;
  std::string name{};
  std::string user = "default";
  bool authenticated = false;
  bool in_transaction = false;
  bool spoiled = false;  ///< A command of the transaction was refused.
  bool dirty = false;    ///< A watched key was changed.
  std::vector<waiting_command> queue{};
  std::vector<watched_key> watched{};
  std::optional<waiting_command> held{};
  bool deaf = false;     ///< Reads nothing more.
  bool mute = false;     ///< Says nothing more.
  bool closing = false;  ///< Is closed when its replies are out.
};

/// Data, state and sessions.
struct core {
  explicit core(fake_server_options o);
  ~core();

  /// Unix time in milliseconds and in nanoseconds.
  [[nodiscard]] std::int64_t unix_ms(time_point now) const noexcept;
  [[nodiscard]] std::int64_t unix_ns(time_point now) const noexcept;
  /// True when a new connection has to authenticate.
  [[nodiscard]] bool needs_auth() const;
  /// Marks the sessions that watch the key.
  void modified(int db, std::string_view key);
  /// Marks all sessions that watch anything in the database (-1: in any).
  void modified_all(int db);
  /// Everything a process loses when it dies, except the password.
  void reset();

  static constexpr std::uint64_t first_script_random = 0x1234ABCD330E;

  fake_server_options options;
  keyspace data;
  server_state state;
  std::map<std::string, user, std::less<>> users;
  std::map<fake_server::session, session_state> sessions;
  std::map<std::string, std::string> config;
  std::set<std::string, std::less<>> scripts;  ///< SHA-1 of the known ones; the functions live in the engine.
  std::unique_ptr<script_engine> engine;
  /// State of math.random: begins with the process and goes on from script to script.
  std::uint64_t script_random = first_script_random;
  fake_server::session last_session = 0;
  std::uint64_t commands = 0;
  std::vector<std::uint64_t> executed;  ///< Places in the log of what EXEC ran.
};

/// One execution of a command.
struct call {
  core& server;
  session_state& client;
  arguments const& args;
  command_spec const& spec;
  time_point now;
  reply_writer out{};
  bool in_script = false;

  [[nodiscard]] std::int64_t ms() const noexcept { return server.unix_ms(now); }
  [[nodiscard]] entry* find(std::string_view key) { return server.data.find(client.db, key, ms()); }
  entry& put(std::string_view key, value v) {
    auto& e = server.data.put(client.db, key, std::move(v));
    modified(key);
    return e;
  }
  bool erase(std::string_view key) {
    bool const there = server.data.erase(client.db, key, ms());
    if (there) modified(key);
    return there;
  }
  void modified(std::string_view key) { server.modified(client.db, key); }

  /// The value at `key` when it is a `T`, or null. False, with the error written, when it is of another type.
  template <class T>
  [[nodiscard]] bool typed(std::string_view key, T*& out_value) {
    auto* const e = find(key);
    out_value = e == nullptr ? nullptr : std::get_if<T>(&e->data);
    if (e == nullptr || out_value != nullptr) return true;
    out.error("WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
  }
  /// The i-th word as an integer; nothing, with the error written, when it is none.
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t i);
  void syntax_error() { out.error("ERR syntax error"); }
};

/// The row for these words, or null. `unknown` is then the error line.
[[nodiscard]] command_spec const* find_command(arguments const& args, std::string& unknown);
/// True when the number of words fits.
[[nodiscard]] bool arity_fits(command_spec const& spec, std::size_t words) noexcept;
/// The positions of the keys among the words.
[[nodiscard]] std::vector<std::size_t> key_positions(command_spec const& spec, arguments const& args);

/// What is to be done with a command that arrived.
struct judgement {
  enum class verdict : unsigned char { run, refuse, hold };
  verdict what = verdict::run;
  std::string error{};  ///< The error line of a refusal, without '-'.
};
/// Decides in the order of Redis: rights, cluster, memory, persistence, replicas, role, loading, busy, pause.
/// Marks the transaction as spoiled when it refuses one of its commands.
[[nodiscard]] judgement judge(core& server, session_state& client, command_spec const& spec,
                              arguments const& args);
/// The same for a command inside a script; the text of the refusal, or empty. `wrote`: the script has written
/// already.
[[nodiscard]] std::string judge_in_script(core const& server, session_state const& client,
                                          command_spec const& spec, arguments const& args, bool read_only,
                                          bool wrote);
/// "ERR wrong number of arguments for ...".
[[nodiscard]] std::string arity_error(command_spec const& spec);
/// Runs it, or queues it inside a transaction.
void execute(call& c, std::uint64_t logged);
/// Forgets the transaction and the watched keys.
void discard_transaction(session_state& client);

inline constexpr std::string_view masterdown_error =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

}  // namespace redoubt::testing::detail
