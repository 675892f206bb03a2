// SPDX-License-Identifier: BSL-1.0
//
// Scripted faults of the fake server: what is executed, what leaves, and in which way.
#include <gtest/gtest.h>

#include "fake_server_probe.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::testing::fake_server;
using test::probe;
using kind = fake_server::fault::kind;

std::vector<fake_server::output> ask(probe& p, std::vector<std::string> const& words) {
  p.server.on_bytes(p.session, probe::encode(words), p.now);
  return p.server.take_output();
}

TEST(fake_server_faults, delay) {
  probe p;
  p.server.inject({.command = "get", .what = kind::delay, .delay = 200ms});
  EXPECT_EQ(ask(p, {"PING"}).at(0).delay, 0ms);
  auto const out = ask(p, {"GET", "k"});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].delay, 200ms);
  EXPECT_EQ(out[0].bytes, "$-1\r\n");
  EXPECT_EQ(ask(p, {"GET", "k"}).at(0).delay, 0ms);
}

TEST(fake_server_faults, delayed_and_prompt_replies_stay_in_order) {
  probe p;
  p.server.inject({.command = "GET", .what = kind::delay, .delay = 200ms, .skip = 1});
  p.server.on_bytes(
      p.session, probe::encode({"GET", "a"}) + probe::encode({"GET", "b"}) + probe::encode({"PING"}), p.now);
  auto const out = p.server.take_output();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].bytes, "$-1\r\n");
  EXPECT_EQ(out[1].bytes, "$-1\r\n+PONG\r\n");  // what follows is held back as well
  EXPECT_EQ(out[1].delay, 200ms);
}

TEST(fake_server_faults, drop_reply_executes_and_falls_silent) {
  probe p;
  p.server.inject({.command = "INCR", .what = kind::drop_reply});
  EXPECT_TRUE(ask(p, {"INCR", "k"}).empty());
  EXPECT_TRUE(ask(p, {"INCR", "k"}).empty());
  EXPECT_EQ(p.server.get("k", p.now), "2");
  p.session = p.server.open(p.now);
  EXPECT_EQ(p.ask({"INCR", "k"}), ":3\r\n");
}

TEST(fake_server_faults, silent_executes_nothing) {
  probe p;
  p.server.inject({.what = kind::silent});
  EXPECT_TRUE(ask(p, {"INCR", "k"}).empty());
  EXPECT_TRUE(ask(p, {"INCR", "k"}).empty());
  EXPECT_FALSE(p.server.exists("k", p.now));
  EXPECT_EQ(p.server.count("INCR"), 1u);
  p.server.clear_faults();
  EXPECT_TRUE(ask(p, {"PING"}).empty());  // this connection is lost for good
}

TEST(fake_server_faults, cut) {
  probe p;
  p.server.set("k", "0123456789", p.now);
  p.server.inject({.command = "GET", .what = kind::cut, .cut_after = 7});
  auto const out = ask(p, {"GET", "k"});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes, "$10\r\n01");
  EXPECT_TRUE(out[0].close);
  EXPECT_EQ(p.server.sessions(), 0u);
}

TEST(fake_server_faults, error_by_name) {
  probe p;
  p.server.inject(
      {.command = "SET", .what = kind::error, .text = "LOADING Redis is loading the dataset in memory"});
  EXPECT_EQ(p.ask({"SET", "k", "v"}), "-LOADING Redis is loading the dataset in memory\r\n");
  EXPECT_FALSE(p.server.exists("k", p.now));
  EXPECT_FALSE(p.server.log().back().executed);
  EXPECT_EQ(p.ask({"SET", "k", "v"}), "+OK\r\n");
}

TEST(fake_server_faults, garbage_and_extra_replies) {
  probe p;
  p.server.inject({.command = "INCR", .what = kind::garbage, .text = "HTTP/1.1 400\r\n"});
  p.server.inject({.command = "INCR", .what = kind::extra_reply, .text = "+MORE\r\n"});
  EXPECT_EQ(p.ask({"INCR", "k"}), "HTTP/1.1 400\r\n");
  EXPECT_EQ(p.ask({"INCR", "k"}), ":2\r\n+MORE\r\n");
  EXPECT_EQ(p.ask({"INCR", "k"}), ":3\r\n");
}

TEST(fake_server_faults, resets_before_and_after_execution) {
  probe p;
  p.server.inject({.command = "INCR", .what = kind::reset_before_execution});
  auto out = ask(p, {"INCR", "k"});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].reset);
  EXPECT_TRUE(out[0].bytes.empty());
  EXPECT_FALSE(p.server.exists("k", p.now));

  p.session = p.server.open(p.now);
  p.server.inject({.command = "INCR", .what = kind::reset_after_execution, .delay = 10ms});
  out = ask(p, {"INCR", "k"});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].reset);
  EXPECT_EQ(out[0].delay, 10ms);
  EXPECT_EQ(p.server.get("k", p.now), "1");
}

TEST(fake_server_faults, skip_and_times) {
  probe p;
  p.server.inject({.command = "PING", .what = kind::error, .text = "ERR x", .skip = 2, .times = 2});
  EXPECT_EQ(p.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(p.ask({"PING"}), "+PONG\r\n");
  EXPECT_EQ(p.ask({"PING"}), "-ERR x\r\n");
  EXPECT_EQ(p.ask({"PING"}), "-ERR x\r\n");
  EXPECT_EQ(p.ask({"PING"}), "+PONG\r\n");
  p.server.inject({.what = kind::error, .text = "ERR y", .times = 0});
  EXPECT_EQ(p.ask({"PING"}), "+PONG\r\n");
  p.server.inject({.what = kind::error, .text = "ERR y", .times = 100});
  EXPECT_EQ(p.ask({"PING"}), "-ERR y\r\n");
  p.server.clear_faults();
  EXPECT_EQ(p.ask({"PING"}), "+PONG\r\n");
}

TEST(fake_server_faults, transactions_are_hit_at_exec_only) {
  probe p;
  p.server.inject({.command = "SET", .what = kind::error, .text = "ERR x"});
  EXPECT_EQ(p.ask({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(p.ask({"SET", "k", "v"}), "+QUEUED\r\n");
  EXPECT_EQ(p.ask({"EXEC"}), "*1\r\n+OK\r\n");
  p.server.clear_faults();
  p.server.inject({.command = "EXEC", .what = kind::reset_after_execution});
  p.ask({"MULTI"});
  p.ask({"INCR", "n"});
  EXPECT_TRUE(ask(p, {"EXEC"}).at(0).reset);
  EXPECT_EQ(p.server.get("n", p.now), "1");
}

TEST(fake_server_faults, a_refusal_by_state_is_not_turned_into_an_execution) {
  probe p;
  p.server.become_replica();
  p.server.inject({.command = "SET", .what = kind::extra_reply, .text = "+X\r\n"});
  EXPECT_EQ(p.ask({"SET", "k", "v"}), "-READONLY You can't write against a read only replica.\r\n+X\r\n");
  EXPECT_FALSE(p.server.exists("k", p.now));
}

TEST(fake_server_faults, a_held_write_meets_its_fault_when_it_runs) {
  probe p;
  p.server.inject({.command = "INCR", .what = kind::reset_after_execution});
  p.server.pause_writes(p.now + 100ms);
  EXPECT_TRUE(ask(p, {"INCR", "k"}).empty());
  p.now += 100ms;
  p.server.on_time(p.now);
  EXPECT_TRUE(p.server.take_output().at(0).reset);
  EXPECT_EQ(p.server.get("k", p.now), "1");
}

}  // namespace
