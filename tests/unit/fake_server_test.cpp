// SPDX-License-Identifier: BSL-1.0
//
// The fake server without sockets: time, states, order of output, log. That it answers like Redis is shown by
// the parity tests against a real one.
#include <gtest/gtest.h>

#include "fake_server_probe.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::testing::fake_server;
using redoubt::testing::fake_server_options;
using test::probe;

TEST(fake_server, answers_what_was_asked_in_the_order_of_the_session) {
  probe p;
  auto const other = p.server.open(p.now);
  p.server.on_bytes(p.session, probe::encode({"SET", "k", "v"}) + probe::encode({"GET", "k"}), p.now);
  p.server.on_bytes(other, probe::encode({"PING"}), p.now);
  p.server.on_bytes(p.session, probe::encode({"PING"}), p.now);
  auto const out = p.server.take_output();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].to, p.session);
  EXPECT_EQ(out[0].bytes, "+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(out[1].to, other);
  EXPECT_EQ(out[2].bytes, "+PONG\r\n");
  EXPECT_TRUE(p.server.take_output().empty());
}

TEST(fake_server, reads_requests_that_are_cut_anywhere) {
  probe p;
  auto const bytes = probe::encode({"SET", "key", "va\r\nlue"}) + probe::encode({"GET", "key"});
  for (char const c : bytes) p.server.on_bytes(p.session, std::string_view(&c, 1), p.now);
  EXPECT_EQ(p.replies(), "+OK\r\n$7\r\nva\r\nlue\r\n");
}

TEST(fake_server, keys_expire_by_the_time_that_is_given) {
  probe p;
  p.ask({"SET", "k", "v", "PX", "100"});
  p.now += 100ms;
  EXPECT_EQ(p.ask({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_EQ(p.ask({"PTTL", "k"}), ":0\r\n");
  EXPECT_TRUE(p.server.exists("k", p.now));
  p.now += 1ms;
  EXPECT_FALSE(p.server.exists("k", p.now));
  EXPECT_EQ(p.server.size(p.now), 0u);
  EXPECT_EQ(p.ask({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(p.ask({"PTTL", "k"}), ":-2\r\n");
}

TEST(fake_server, expiry_aborts_a_watched_transaction) {
  probe p;
  p.ask({"SET", "k", "v", "PX", "100"});
  p.ask({"WATCH", "k"});
  p.now += 200ms;
  p.ask({"MULTI"});
  p.ask({"PING"});
  EXPECT_EQ(p.ask({"EXEC"}), "*-1\r\n");
}

TEST(fake_server, shows_the_unix_time_it_was_given) {
  probe p({.unix_time_at_zero = 1000s});
  p.now = redoubt::time_point(2s + 30us);
  EXPECT_EQ(p.ask({"TIME"}), "*2\r\n$4\r\n1002\r\n$2\r\n30\r\n");
  p.ask({"SET", "k", "v", "EXAT", "1003"});
  EXPECT_EQ(p.server.ttl("k", p.now), 1s);
}

TEST(fake_server, direct_access_sees_the_same_data) {
  probe p;
  p.server.set("a", "1", p.now);
  p.server.set("b", "2", p.now, 5s);
  p.ask({"ZADD", "z", "1", "m"});
  EXPECT_EQ(p.ask({"GET", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(p.ask({"TTL", "b"}), ":5\r\n");
  EXPECT_EQ(p.server.get("a", p.now), "1");
  EXPECT_FALSE(p.server.get("z", p.now));
  EXPECT_FALSE(p.server.get("missing", p.now));
  EXPECT_FALSE(p.server.ttl("a", p.now));
  EXPECT_EQ(p.server.keys(p.now), (std::vector<std::string>{"a", "b", "z"}));
  p.ask({"SELECT", "3"});
  p.ask({"SET", "other", "x"});
  EXPECT_EQ(p.server.get("other", p.now, 3), "x");
  EXPECT_EQ(p.server.size(p.now, 3), 1u);
}

TEST(fake_server, paused_keeps_what_comes_and_runs_it_in_the_order_of_arrival) {
  probe p;
  p.server.pause();
  EXPECT_TRUE(p.server.paused());
  EXPECT_TRUE(p.server.accepts());
  auto const other = p.server.open(p.now);
  p.server.on_bytes(other, probe::encode({"APPEND", "k", "a"}), p.now);
  p.server.on_bytes(p.session, probe::encode({"APPEND", "k", "b"}), p.now);
  p.server.on_bytes(other, probe::encode({"APPEND", "k", "c"}), p.now);
  p.server.on_closed(other, p.now);
  EXPECT_TRUE(p.server.take_output().empty());
  EXPECT_EQ(p.server.count(""), 0u);  // nothing was read
  p.server.resume(p.now + 1s);
  EXPECT_EQ(p.server.get("k", p.now + 1s), "abc");
  EXPECT_EQ(p.server.sessions(), 1u);
  EXPECT_EQ(p.replies(), ":2\r\n");  // those of `other` have nobody to go to, but they were executed
}

TEST(fake_server, killed_resets_forgets_and_refuses_until_restarted) {
  probe p;
  p.ask({"SET", "k", "v"});
  p.ask({"EVAL", "return 1", "0"});
  p.server.become_replica();
  p.server.kill();
  EXPECT_FALSE(p.server.accepts());
  auto const out = p.server.take_output();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].reset);
  EXPECT_EQ(p.server.sessions(), 0u);
  p.server.on_bytes(p.session, probe::encode({"PING"}), p.now);
  EXPECT_TRUE(p.server.take_output().empty());

  p.server.restart(p.now);
  EXPECT_TRUE(p.server.accepts());
  p.session = p.server.open(p.now);
  EXPECT_EQ(p.ask({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(p.ask({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(p.ask({"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"}).substr(0, 9), "-NOSCRIPT");
  EXPECT_EQ(p.server.sessions_opened(), 2u);
}

TEST(fake_server, closes_all_connections_in_an_orderly_way) {
  probe p;
  p.ask({"SET", "k", "v"});
  p.server.close_sessions();
  auto const out = p.server.take_output();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].close);
  EXPECT_FALSE(out[0].reset);
  EXPECT_EQ(p.server.sessions(), 0u);
  p.session = p.server.open(p.now);
  EXPECT_EQ(p.ask({"GET", "k"}), "$1\r\nv\r\n");
}

TEST(fake_server, pause_ends_with_the_process) {
  probe p;
  p.server.pause();
  p.server.on_bytes(p.session, probe::encode({"SET", "k", "v"}), p.now);
  p.server.kill();
  p.server.restart(p.now);
  p.server.resume(p.now);
  EXPECT_FALSE(p.server.paused());
  EXPECT_EQ(p.server.size(p.now), 0u);
}

TEST(fake_server, holds_writes_and_applies_them_late) {
  probe p;
  p.server.pause_writes(p.now + 1s);
  EXPECT_EQ(p.server.next_wakeup(), p.now + 1s);
  EXPECT_EQ(p.ask({"INCR", "k"}), "");
  EXPECT_FALSE(p.server.log().back().executed);
  p.now += 999ms;
  p.server.on_time(p.now);
  EXPECT_EQ(p.replies(), "");
  p.now += 1ms;
  p.server.on_time(p.now);
  EXPECT_EQ(p.replies(), ":1\r\n");
  EXPECT_TRUE(p.server.log().back().executed);
  EXPECT_FALSE(p.server.next_wakeup());
}

TEST(fake_server, wakes_its_owner_when_a_state_leaves_output) {
  probe p;
  int woken = 0;
  p.server.set_wake([&] { ++woken; });
  p.server.pause();
  p.server.on_bytes(p.session, probe::encode({"PING"}), p.now);
  EXPECT_EQ(woken, 0);
  p.server.resume(p.now);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(p.replies(), "+PONG\r\n");
  p.server.pause_writes(p.now + 1s);
  EXPECT_EQ(woken, 2);
  p.server.kill();
  EXPECT_EQ(woken, 3);
}

TEST(fake_server, logs_what_was_read_and_whether_it_ran) {
  probe p;
  p.ask({"set", "k", "v"});
  p.ask({"GET"});
  p.server.become_replica();
  p.ask({"SET", "k", "w"});
  p.server.become_primary();
  auto const& log = p.server.log();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0].from, p.session);
  EXPECT_EQ(log[0].at, p.now);
  EXPECT_EQ(log[0].arguments, (std::vector<std::string>{"set", "k", "v"}));
  EXPECT_TRUE(log[0].executed);
  EXPECT_FALSE(log[1].executed);
  EXPECT_FALSE(log[2].executed);
  EXPECT_EQ(p.server.count("SET"), 2u);
  EXPECT_EQ(p.server.count("Get"), 1u);
  EXPECT_EQ(p.server.count("DEL"), 0u);
  EXPECT_EQ(p.server.count(""), 3u);
  p.server.clear_log();
  EXPECT_TRUE(p.server.log().empty());
  EXPECT_EQ(p.server.count(""), 0u);
}

TEST(fake_server, a_queued_command_counts_as_executed_when_exec_ran_it) {
  probe p;
  p.ask({"MULTI"});
  p.ask({"SET", "a", "1"});
  p.server.clear_log();  // an entry that is gone is not looked for
  p.ask({"SET", "b", "1"});
  EXPECT_FALSE(p.server.log()[0].executed);
  p.ask({"EXEC"});
  EXPECT_TRUE(p.server.log()[0].executed);
  EXPECT_EQ(p.server.size(p.now), 2u);
}

TEST(fake_server, the_log_is_bounded_and_keeps_the_latest) {
  probe p({.log_limit = 10});
  for (int i = 0; i < 95; ++i) p.ask({"ECHO", std::to_string(i)});
  auto const& log = p.server.log();
  EXPECT_GE(log.size(), 10u);
  EXPECT_LT(log.size(), 20u);
  EXPECT_EQ(log.back().arguments[1], "94");
  EXPECT_TRUE(log.back().executed);
  EXPECT_EQ(p.server.count("ECHO"), 95u);
}

TEST(fake_server, the_same_input_gives_the_same_bytes) {
  auto const run = [] {
    probe p({.seed = 7});
    std::string out;
    for (int i = 0; i < 50; ++i) p.ask({"SET", "k" + std::to_string(i), "v"});
    for (int i = 0; i < 20; ++i) out += p.ask({"RANDOMKEY"});
    return out + p.ask({"EVAL", "return tostring(math.random())", "0"}) + p.ask({"INFO"});
  };
  EXPECT_EQ(run(), run());
}

TEST(fake_server, scan_visits_every_key_once) {
  probe p;
  for (int i = 0; i < 37; ++i) p.ask({"SET", "k" + std::to_string(i), "v"});
  std::size_t seen = 0;
  std::string cursor = "0";
  do {
    auto const reply = p.ask({"SCAN", cursor, "COUNT", "5"});
    auto const start = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(start, reply.find("\r\n", start) - start);
    for (auto at = reply.find("\r\nk"); at != std::string::npos; at = reply.find("\r\nk", at + 1)) ++seen;
  } while (cursor != "0");
  EXPECT_EQ(seen, 37u);
}

TEST(fake_server, info_tells_role_and_keys) {
  probe p;
  p.ask({"SET", "k", "v", "EX", "10"});
  EXPECT_NE(p.ask({"INFO"}).find("role:master"), std::string::npos);
  EXPECT_NE(p.ask({"INFO", "keyspace"}).find("db0:keys=1,expires=1"), std::string::npos);
  p.server.lose_primary(true);
  auto const text = p.ask({"INFO", "replication"});
  EXPECT_NE(text.find("role:slave\r\nmaster_link_status:down"), std::string::npos);
  EXPECT_EQ(text.find("redis_version"), std::string::npos);
}

TEST(fake_server, can_be_moved_with_its_sessions) {
  probe p;
  p.ask({"SET", "k", "v"});
  p.ask({"EVAL", "return 1", "0"});
  fake_server moved = std::move(p.server);
  moved.on_bytes(p.session, probe::encode({"EVAL", "return redis.call('get', 'k')", "0"}), p.now);
  EXPECT_EQ(moved.take_output().at(0).bytes, "$1\r\nv\r\n");
}

TEST(fake_server, an_endless_script_is_stopped) {
  probe p({.script_instructions = 100'000});
  EXPECT_NE(p.ask({"EVAL", "while true do end", "0"}).find("instruction limit"), std::string::npos);
  EXPECT_NE(p.ask({"EVAL", "while true do pcall(function() while true do end end) end", "0"}).find("limit"),
            std::string::npos);
  EXPECT_NE(p.ask({"EVAL", "coroutine.wrap(function() while true do end end)()", "0"}).find("limit"),
            std::string::npos);
  EXPECT_EQ(p.ask({"EVAL", "local n = 0 for i = 1, 1000 do n = n + i end return n", "0"}), ":500500\r\n");
}

TEST(fake_server, a_script_that_has_written_is_not_stopped_half_way_by_a_state) {
  probe p;
  p.server.fill_memory();
  EXPECT_EQ(p.ask({"EVAL", "redis.call('del', 'x') return redis.call('set', 'k', 'v')", "0"}), "+OK\r\n");
  EXPECT_EQ(p.ask({"EVAL", "return redis.call('set', 'k', 'v')", "0"}).substr(0, 4), "-OOM");
}

}  // namespace
