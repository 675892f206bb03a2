// SPDX-License-Identifier: BSL-1.0
//
// A Redis for tests that is only a value: bytes in, bytes out. No socket, no thread, no clock. It answers as
// Redis 7.0.15 does (tests/redis/parity_test.cpp compares them byte for byte), can be put into every bad
// state by name, and can be told to misbehave on chosen commands.
//
// `loopback_server` puts it behind a real port, `fake_client` calls it without any connection, and the
// virtual world connects it to clients under virtual time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <redoubt/core/time.hpp>

namespace redoubt::testing {

/// What a `fake_server` is created with.
struct fake_server_options {
  /// User that must authenticate. Empty: the `default` user, as `requirepass` sets it. Used with `password`
  /// only.
  std::string user{};
  /// Password that every connection must give first. Empty: none is needed.
  std::string password{};
  /// Connections that are served at once; one more is told so and closed. Default 10000.
  std::size_t clients_max = 10000;
  /// Decides what looks random (RANDOMKEY, the run id in INFO). Same seed and same input: same bytes.
  std::uint64_t seed = 1;
  /// Number of databases that SELECT accepts. Default 16.
  int databases = 16;
  /// At least this many of the latest commands are kept in `log()`; the counts go on for ever. Default 65536.
  std::size_t log_limit = 65536;
  /// The unix time that the server shows when its `now` is the zero of the clock (TIME, EXAT, PXAT). Default
  /// 1'700'000'000 s.
  duration unix_time_at_zero = std::chrono::seconds(1'700'000'000);
  /// Lua instructions after which a script is stopped with an error, so that an endless script cannot hang a
  /// test. Default 10 million, a fraction of a second.
  std::size_t script_instructions = 10'000'000;
  /// Longest argument (`proto-max-bulk-len`). Default 512 MiB.
  std::size_t argument_bytes_max = std::size_t{512} << 20;
};

/// A sans-io Redis: strings, counters, hashes, lists, sorted sets, expiry, transactions, Lua scripts. Every
/// method that depends on time takes `now`, which must never go back. Movable, not copyable. Not thread-safe.
///
/// The order of use: `open`, `on_bytes`..., and after each call `take_output` until it is empty.
///
/// Not there, and answered as unknown commands: publish and subscribe, blocking commands, sets, streams,
/// administration beyond a few questions. HELLO 3 is refused, so that RESP2 is spoken. Scripts have no
/// `cjson`, `bit`, `struct` and `cmsgpack` and no `#!` line. SCAN and KEYS give sorted keys. `maxmemory` and
/// the like are states to be set by name; CONFIG SET only remembers them.
class fake_server {
 public:
  /// Names a connection; never used twice.
  using session = std::uint64_t;

  /// Something to do with a connection. The order within one session is the order of the list.
  struct output {
    session to = 0;       ///< Which connection.
    std::string bytes{};  ///< What to send first; may be empty.
    duration delay{};     ///< Holds back this and everything after it on the same session.
    bool close = false;   ///< Then close in an orderly way (FIN).
    bool reset = false;   ///< Then reset the connection (RST).
  };

  /// A healthy, empty primary.
  explicit fake_server(fake_server_options options = {});
  ~fake_server();
  fake_server(fake_server&&) noexcept;
  fake_server& operator=(fake_server&&) noexcept;

  // --- Connections
  // -------------------------------------------------------------------------------------------

  /// False while killed: the connection must be refused. True while paused, because the kernel accepts.
  [[nodiscard]] bool accepts() const noexcept;
  /// A new connection. Call it only while `accepts()`.
  session open(time_point now);
  /// Bytes from the peer, cut anywhere. Bytes for a session that is gone are ignored.
  void on_bytes(session from, std::string_view bytes, time_point now);
  /// The peer went away. Commands received before still run, as in a real server; their replies are dropped.
  void on_closed(session from, time_point now);
  /// What there is to do, oldest first; empties the list. A session that is closed or reset is gone already.
  [[nodiscard]] std::vector<output> take_output();
  /// When the server next wants `on_time`; empty while it waits for nothing.
  [[nodiscard]] std::optional<time_point> next_wakeup() const;
  /// Lets time pass: ends CLIENT PAUSE and runs what it held.
  void on_time(time_point now);
  /// `wake` is called at the end of `resume` and of each method that leaves something for `take_output` or a
  /// `next_wakeup`, so that a change of state made by a test reaches the one who moves the bytes. It must not
  /// call the server; post instead.
  void set_wake(std::function<void()> wake);

  // --- States, by name
  // ---------------------------------------------------------------------------------------

  /// Freezes the process (SIGSTOP): connections are accepted, bytes are taken but not read.
  void pause();
  /// Lets it go on (SIGCONT): everything that came meanwhile is processed in the order of its arrival.
  void resume(time_point now);
  /// True between `pause` and `resume`.
  [[nodiscard]] bool paused() const noexcept;
  /// Ends the process (SIGKILL): connections are reset, data and scripts are lost, new connections are
  /// refused.
  void kill();
  /// Starts it again: empty, a healthy primary, with the same password. Not killed: kills it first.
  void restart(time_point now);
  /// A read-only replica with a live primary; connections stay open. Writes: READONLY.
  void become_replica();
  /// A primary again; connections stay open.
  void become_primary();
  /// True: a replica with `replica-serve-stale-data no` that has lost its primary (MASTERDOWN). False: it is
  /// back.
  void lose_primary(bool lost);
  /// `maxmemory` is reached and nothing may be evicted (OOM).
  void fill_memory();
  /// There is room again.
  void free_memory();
  /// The data set is being loaded (LOADING).
  void start_loading();
  /// It is loaded.
  void finish_loading();
  /// A script runs past its limit (BUSY). SCRIPT KILL ends it too.
  void start_busy();
  /// It has ended.
  void finish_busy();
  /// Fewer replicas than `min-replicas-to-write` (NOREPLICAS).
  void too_few_replicas(bool on);
  /// The last snapshot failed and `stop-writes-on-bgsave-error` is set (MISCONF).
  void fail_snapshots(bool on);
  /// A cluster node without slots (CLUSTERDOWN).
  void cluster_down(bool on);
  /// CLIENT PAUSE .. WRITE: writes and scripts are held, then applied and answered late.
  void pause_writes(time_point until);
  /// Ends all connections in an orderly way, as `timeout` and CLIENT KILL do; new ones are accepted.
  void close_sessions();
  /// Forgets all scripts: SCRIPT FLUSH.
  void flush_scripts();
  /// Connections must authenticate from now on; those that are open stay as they are. Empty `user`:
  /// `default`.
  void require_password(std::string user, std::string password);
  /// A user with limited rights. May touch keys that begin with `key_prefix` only, and not run
  /// `refused_commands` (lower case).
  struct limited_user {
    std::string name;                             ///< For AUTH.
    std::string password;                         ///< For AUTH.
    std::string key_prefix{};                     ///< Of the keys it may touch; empty: all.
    std::vector<std::string> refused_commands{};  ///< "set", or "script|load" for a subcommand.
  };
  /// Adds or replaces a user. Connections that do not authenticate stay the unlimited default user.
  void add_user(limited_user user);

  // --- Scripted faults
  // ---------------------------------------------------------------------------------------

  /// A misbehaviour on chosen commands. The first fault in the list that matches a command applies to it.
  struct fault {
    /// What happens to the command.
    enum class kind : std::uint8_t {
      delay,       ///< Executed; the reply comes `delay` late, and so does what follows it.
      drop_reply,  ///< Executed; neither this reply nor anything after it leaves on this session.
      silent,      ///< Not executed; nothing more is read or answered on this session.
      cut,         ///< Executed; the session is closed after `cut_after` bytes of the reply.
      error,       ///< Not executed; answered with the error line `text`, e.g. "LOADING Redis is ...".
      garbage,     ///< Executed; the bytes `text` are sent instead of the reply.
      reset_before_execution,  ///< Not executed; the session is reset.
      reset_after_execution,   ///< Executed; the session is reset without a reply.
      extra_reply,             ///< Executed; the bytes `text` are sent after the reply.
    };
    std::string command{};      ///< Which command, in any case; empty: any.
    kind what = kind::delay;    ///< What happens.
    duration delay{};           ///< For `delay`; for the other kinds it holds the answer back as well.
    std::size_t cut_after = 0;  ///< For `cut`.
    std::string text{};     ///< For `error` (without '-' and CR LF), `garbage` and `extra_reply` (raw bytes).
    std::size_t skip = 0;   ///< Leaves the first `skip` matches untouched.
    std::size_t times = 1;  ///< Then applies this many times.
  };
  /// Adds a fault behind those that wait already. Commands inside scripts and transactions are not matched.
  void inject(fault f);
  /// Removes all faults that have not happened yet. Sessions that are silent already stay so.
  void clear_faults();

  // --- Observation
  // -------------------------------------------------------------------------------------------

  /// A command as the server read it.
  struct received {
    session from = 0;                    ///< On which connection.
    std::vector<std::string> arguments;  ///< Name and arguments.
    time_point at{};                     ///< When it was read.
    bool executed = false;  ///< False while it is held or queued, and for ever when it was refused.
  };
  /// The commands that were read, oldest first; see `fake_server_options::log_limit`.
  [[nodiscard]] std::vector<received> const& log() const;
  /// Empties the log and sets the counts to zero.
  void clear_log();
  /// How many commands of this name (any case; empty: all) were read since the start, executed or not;
  /// `clear_log` sets it to zero.
  [[nodiscard]] std::size_t count(std::string_view command_name) const;
  /// Connections that are open.
  [[nodiscard]] std::size_t sessions() const;
  /// Connections that were ever opened.
  [[nodiscard]] std::size_t sessions_opened() const;

  // --- The keyspace, directly: no state or fault stands in the way
  // -------------------------------------------

  /// The string at `key`; empty when there is none or it holds another type.
  [[nodiscard]] std::optional<std::string> get(std::string_view key, time_point now, int db = 0) const;
  /// Stores a string. `ttl` zero: without expiry.
  void set(std::string_view key, std::string_view value, time_point now, duration ttl = {}, int db = 0);
  /// What is left of the key's life; empty when there is no key or no expiry.
  [[nodiscard]] std::optional<duration> ttl(std::string_view key, time_point now, int db = 0) const;
  /// True when there is a value of any type.
  [[nodiscard]] bool exists(std::string_view key, time_point now, int db = 0) const;
  /// Number of keys that have not expired.
  [[nodiscard]] std::size_t size(time_point now, int db = 0) const;
  /// Their names, sorted.
  [[nodiscard]] std::vector<std::string> keys(time_point now, int db = 0) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace redoubt::testing
