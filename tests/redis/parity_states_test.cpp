// SPDX-License-Identifier: BSL-1.0
//
// Each bad state, made on a real server and put on the fake by name: the answers must be the same.
#include <filesystem>
#include <functional>
#include <thread>

#include "parity.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::test_support::encode;
using redoubt::test_support::parity;
using redoubt::test_support::raw_redis;
using redoubt::test_support::real_redis;
using redoubt::test_support::words;

constexpr auto writing_script = "return redis.call('set', KEYS[1], 'x')";

// What every state is asked.
void ask_all(parity& p) {
  p.same_all({{"PING"},
              {"GET", "k"},
              {"GET", "missing"},
              {"SET", "k", "v"},
              {"DEL", "missing"},
              {"EXPIRE", "k", "1000"},
              {"EVAL", writing_script, "1", "k"},
              {"EVAL", "return redis.call('get', KEYS[1])", "1", "k"},
              {"EVAL", "return redis.pcall('set', KEYS[1], 'x')", "1", "k"},
              {"EVAL", "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'x')", "1", "k"},
              {"EVAL", "return 1", "0"},
              {"MULTI"},
              {"SET", "k", "v"},
              {"EXEC"},
              {"MULTI"},
              {"GET", "k"},
              {"EXEC"},
              {"DISCARD"},
              {"ECHO", "x"},
              {"SELECT", "0"},
              {"CLIENT", "SETNAME", "me"},
              {"CLIENT", "GETNAME"},
              {"NOPE"},
              {"GET"},
              {"SCRIPT", "EXISTS", "x"},
              {"SCRIPT", "KILL"}});
}

void until(std::function<bool()> const& reached) {
  for (int i = 0; i < 1000 && !reached(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(reached());
}

bool answers(parity& p, words const& question, std::string_view part, std::size_t on = 0) {
  return p.ask_real(question, on).find(part) != std::string::npos;
}

TEST(parity_states, healthy) {
  parity p;
  ask_all(p);
}

TEST(parity_states, replica) {
  real_redis primary({"--repl-diskless-sync-delay", "0"});
  parity p;
  p.same({"SET", "k", "old"});
  raw_redis(primary.port()).call({"SET", "k", "old"});
  p.ask_real({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())});
  until([&] { return answers(p, {"INFO", "replication"}, "master_link_status:up"); });
  p.fake.become_replica();
  ask_all(p);

  // The primary dies, and the replica may not serve what it has.
  p.ask_real({"CONFIG", "SET", "replica-serve-stale-data", "no"});
  primary.kill();
  until([&] { return answers(p, {"PING"}, "MASTERDOWN"); });
  p.fake.lose_primary(true);
  ask_all(p);

  p.same({"REPLICAOF", "NO", "ONE"});
  ask_all(p);
}

TEST(parity_states, memory_full) {
  parity p;
  p.same({"SET", "k", "v"});
  p.ask_real({"SET", "filler", std::string(1 << 20, 'x')});
  p.ask_real({"CONFIG", "SET", "maxmemory", "1mb"});
  p.fake.fill_memory();
  ask_all(p);
  p.same_all({{"ZREM", "z", "a"},
              {"EXPIRE", "k", "10"},
              {"GETDEL", "k"},
              {"INCR", "k"},
              {"WATCH", "k"},
              {"UNWATCH"}});
  p.ask_real({"CONFIG", "SET", "maxmemory", "0"});
  p.fake.free_memory();
  ask_all(p);
}

TEST(parity_states, too_few_replicas) {
  parity p({"--min-replicas-to-write", "1"});
  p.fake.too_few_replicas(true);
  ask_all(p);
}

TEST(parity_states, snapshots_fail) {
  parity p;
  p.same({"SET", "k", "v"});
  p.ask_real({"CONFIG", "SET", "save", "900 1"});
  // A snapshot is written to a file of another name first, so a folder in its place makes it fail.
  std::filesystem::create_directory(p.real.dir() / "dump.rdb");
  p.ask_real({"BGSAVE"});
  until([&] { return answers(p, {"INFO", "persistence"}, "rdb_last_bgsave_status:err"); });
  p.fake.fail_snapshots(true);
  ask_all(p);
  std::filesystem::remove(p.real.dir() / "dump.rdb");
}

TEST(parity_states, loading) {
  parity p({"--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression",
            "no"});
  auto const loader = p.connect();
  p.ask_real({"DEBUG", "POPULATE", "2000", "key", "100"});
  p.peer(loader).send(encode({"DEBUG", "RELOAD"}));
  until([&] { return answers(p, {"PING"}, "LOADING"); });
  p.fake.start_loading();
  ask_all(p);
  p.same_all({{"AUTH", "x"}, {"TIME", "x"}, {"HELLO", "4"}, {"CLIENT", "PAUSE", "x"}});
}

TEST(parity_states, busy) {
  parity p({"--busy-reply-threshold", "10"});
  auto const blocker = p.connect();
  p.same({"SET", "k", "v"});
  p.peer(blocker).send(encode({"EVAL", "while true do end", "0"}));
  until([&] { return answers(p, {"PING"}, "BUSY"); });
  p.fake.start_busy();
  ask_all(p);  // ends with SCRIPT KILL
  until([&] { return answers(p, {"PING"}, "PONG"); });
  ask_all(p);
}

TEST(parity_states, writes_paused) {
  parity p;
  auto const other = p.connect();
  auto const third = p.connect();
  p.same_all({{"SET", "k", "old"}, {"CLIENT", "PAUSE", "1500", "WRITE"}});
  p.silent({"SET", "k", "late"}, other);
  p.silent({"PING"}, other);  // what follows a held command is held, too
  p.same_all({{"GET", "k"}, {"PING"}, {"EVAL_RO", "return 1", "0"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}});
  p.silent({"EVAL", "return redis.call('incr', KEYS[1])", "1", "n"}, third);

  ASSERT_TRUE(p.fake.next_wakeup());
  EXPECT_EQ(p.peer(other).read(), "+OK\r\n");
  EXPECT_EQ(p.peer(other).read(), "+PONG\r\n");
  EXPECT_EQ(p.peer(third).read(), ":1\r\n");
  p.fake.on_time(*p.fake.next_wakeup());
  EXPECT_FALSE(p.fake.next_wakeup());
  EXPECT_EQ(p.from_fake(other), "+OK\r\n");
  EXPECT_EQ(p.from_fake(other), "+PONG\r\n");
  EXPECT_EQ(p.from_fake(third), ":1\r\n");
  p.same_all({{"GET", "k"}, {"GET", "n"}});
}

TEST(parity_states, writes_paused_inside_a_transaction) {
  parity p;
  auto const other = p.connect();
  p.same_all({{"MULTI"}, {"SET", "k", "v"}}, other);
  p.same({"CLIENT", "PAUSE", "100000", "WRITE"});
  p.silent({"EXEC"}, other);
  p.same({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(p.from_fake(other), p.peer(other).read());
  p.same({"CLIENT", "PAUSE", "100000", "WRITE"});
  p.same({"MULTI"}, other);
  p.silent({"SET", "k", "w"}, other);
  p.same({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(p.from_fake(other), p.peer(other).read());
  p.same({"EXEC"}, other);
}

TEST(parity_states, a_held_command_dies_with_its_connection) {
  parity p;
  auto const other = p.connect();
  p.same({"CLIENT", "PAUSE", "100000", "WRITE"});
  p.silent({"SET", "k", "late"}, other);
  p.peer(other).close();
  p.fake.on_closed(p.session(other), parity::now());
  std::this_thread::sleep_for(50ms);
  p.same_all({{"CLIENT", "UNPAUSE"}, {"GET", "k"}});
}

TEST(parity_states, everything_paused) {
  parity p;
  auto const other = p.connect();
  p.same({"CLIENT", "PAUSE", "300"});
  p.silent({"PING"}, other);
  EXPECT_EQ(p.peer(other).read(), "+PONG\r\n");
  p.fake.on_time(*p.fake.next_wakeup());
  EXPECT_EQ(p.from_fake(other), "+PONG\r\n");
}

TEST(parity_states, password) {
  parity p({"--requirepass", "secret"}, {.password = "secret"});
  ask_all(p);
  p.same_all({{"HELLO"},
              {"HELLO", "2"},
              {"HELLO", "2", "AUTH", "default", "wrong"},
              {"AUTH", "wrong"},
              {"AUTH", "default", "wrong"},
              {"AUTH", "nobody", "secret"},
              {"PING"},
              {"AUTH", "secret"}});
  ask_all(p);
  auto const other = p.connect();
  p.same_all({{"PING"}, {"AUTH", "default", "secret"}, {"PING"}, {"AUTH", "wrong"}, {"PING"}}, other);
  auto const third = p.connect();
  p.same_bytes("*11\r\n$4\r\nPING\r\n", third);
  auto const fourth = p.connect();
  p.same_bytes("*1\r\n$20000\r\n", fourth);
}

TEST(parity_states, password_set_while_running) {
  parity p;
  p.same_all({{"CONFIG", "SET", "requirepass", "new"}, {"PING"}});
  auto const other = p.connect();
  p.same_all({{"PING"}, {"AUTH", "new"}, {"PING"}}, other);
}

TEST(parity_states, named_user) {
  parity p({}, {.user = "app", .password = "secret"});
  p.ask_real({"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"});
  p.ask_real({"ACL", "SETUSER", "default", "off"});
  auto const c = p.connect();
  p.same_all({{"PING"}, {"AUTH", "secret"}, {"AUTH", "app", "wrong"}, {"AUTH", "app", "secret"}, {"PING"}},
             c);
}

TEST(parity_states, limited_user) {
  parity p;
  p.ask_real(
      {"ACL", "SETUSER", "app", "on", ">secret", "~app:*", "&*", "+@all", "-eval", "-set", "-script|load"});
  p.fake.add_user({.name = "app",
                   .password = "secret",
                   .key_prefix = "app:",
                   .refused_commands = {"eval", "set", "script|load"}});
  p.same_all({{"AUTH", "app", "secret"},
              {"PING"},
              {"GET", "app:k"},
              {"GET", "other"},
              {"MGET", "app:k", "other"},
              {"MSET", "app:k", "1", "other", "2"},
              {"SET", "app:k", "v"},
              {"EVAL", "return 1", "0"},
              {"EVAL_RO", "return 1", "1", "other"},
              {"EVAL_RO", "return redis.call('get', 'other')", "0"},
              {"EVAL_RO", "return redis.call('set', 'app:k', 'v')", "0"},
              {"SCRIPT", "LOAD", "return 1"},
              {"MULTI"},
              {"GET", "other"},
              {"EXEC"},
              {"AUTH", "app", "wrong"},
              {"GET", "app:k"}});
}

TEST(parity_states, too_many_clients) {
  parity p({"--maxclients", "2"}, {.clients_max = 2});
  p.connect();
  auto const third = p.connect();
  EXPECT_EQ(p.peer(third).read(), p.from_fake(third));
  EXPECT_TRUE(p.peer(third).wait_closed());
  EXPECT_EQ(p.from_fake(third), "<closed>");
  EXPECT_EQ(p.fake.sessions(), 2u);
}

TEST(parity_states, cluster_without_slots) {
  parity p({"--cluster-enabled", "yes"});
  p.fake.cluster_down(true);
  ask_all(p);
  p.same_all({{"EVAL", "return redis.call('get', 'k')", "0"},
              {"EVAL", "return redis.call('ping')", "0"},
              {"SELECT", "1"},
              {"DBSIZE"}});
}

TEST(parity_states, frozen_and_killed) {
  parity p;
  p.same({"SET", "k", "1"});
  p.real.pause();
  p.fake.pause();
  EXPECT_TRUE(p.fake.accepts());
  auto const other = p.connect();
  p.silent({"INCR", "k"});
  p.silent({"INCR", "k"}, other);
  p.real.resume();
  p.fake.resume(parity::now());
  EXPECT_EQ(p.peer().read(), ":2\r\n");
  EXPECT_EQ(p.from_fake(), ":2\r\n");
  EXPECT_EQ(p.peer(other).read(), ":3\r\n");
  EXPECT_EQ(p.from_fake(other), ":3\r\n");

  // A peer that gives up before the server goes on: its command runs all the same.
  auto const third = p.connect();
  p.real.pause();
  p.fake.pause();
  p.silent({"INCR", "k"}, third);
  p.peer(third).close();
  p.fake.on_closed(p.session(third), parity::now());
  p.real.resume();
  p.fake.resume(parity::now());
  until([&] { return answers(p, {"GET", "k"}, "4"); });
  p.same({"GET", "k"});

  p.real.kill();
  p.fake.kill();
  EXPECT_FALSE(p.fake.accepts());
  p.same({"GET", "k"});
  p.real.start();
  p.fake.restart(parity::now());
  auto const fresh = p.connect();
  p.same({"GET", "k"}, fresh);
}

}  // namespace
