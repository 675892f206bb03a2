// SPDX-License-Identifier: BSL-1.0
//
// What servers answer and how they end connections: errors, read-only replicas, refused handshakes, replies
// that are too large, and peers that are not Redis.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::command;
using redoubt::effect;
using redoubt::errc;
using redoubt::event_kind;
using redoubt::failure_class;
using redoubt::link_state;
using redoubt::phase;
using redoubt::server_errc;
using test::scripted_link;
using test::ticket;
using action = scripted_link::action;

constexpr std::string_view readonly = "-READONLY You can't write against a read only replica.\r\n";

std::string bulk(std::string_view v) {
  return "$" + std::to_string(v.size()) + "\r\n" + std::string(v) + "\r\n";
}

TEST(core_server_states, an_error_belongs_to_its_call_and_harms_nobody) {
  scripted_link l;
  l.make_idle();
  auto const a = l.call(command("LPUSH", "k", "v"));
  l.written();
  auto const b = l.get("k");
  l.written();
  l.receive("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n" + bulk("v"));
  ASSERT_TRUE(a->ended() && b->ended());
  EXPECT_EQ(a->why().code, errc::server_error);
  EXPECT_EQ(a->why().server, server_errc::wrongtype);
  EXPECT_EQ(a->why().effect, effect::none);
  EXPECT_EQ(a->why().phase, phase::done);
  EXPECT_EQ(a->why().command.view(), "LPUSH");
  EXPECT_EQ(a->why().attempts, 1);
  EXPECT_EQ(a->why().detail->endpoint, "127.0.0.1:6379");
  EXPECT_EQ(b->value.as_string(), "v");
  EXPECT_EQ(l.count(action::drop), 0u);
}

TEST(core_server_states, C52_C54_states_that_do_not_concern_the_connection_keep_it) {
  for (auto const* line : {"LOADING Redis is loading the dataset in memory", "OOM command not allowed",
                           "MISCONF Redis is configured to save RDB snapshots",
                           "NOREPLICAS Not enough good replicas", "CLUSTERDOWN Hash slot not served",
                           "MASTERDOWN Link with MASTER is down", "BUSY Redis is busy running a script.",
                           "MOVED 8442 172.17.0.3:7002", "NOPERM this user has no permissions"}) {
    scripted_link l;
    l.make_idle();
    auto const t = l.call(command("SET", "k", "v"));
    l.answer("-" + std::string(line) + "\r\n");
    ASSERT_TRUE(t->ended());
    EXPECT_EQ(t->why().code, errc::server_error);
    EXPECT_EQ(t->why().effect, effect::none) << line;
    l.advance(2s);
    EXPECT_TRUE(l.log.size() == 2) << line << ": one write, one read, no dial";
  }
}

// The server may have run what stands before the line that failed, whatever its words are.
TEST(core_server_states, C37_an_error_that_a_script_made_may_have_had_an_effect) {
  for (auto const* name : {"EVAL", "evalsha", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"}) {
    for (auto const* line :
         {"application NOPROTO diagnostic", "ERR limit reached", "WRONGTYPE Operation against a key",
          "OOM command not allowed when used memory > 'maxmemory'.", "BUSY come back later",
          "READONLY You can't write against a read only replica."}) {
      scripted_link l;
      l.make_idle();
      auto const t = l.call(command(name, "x", 0));
      l.answer("-" + std::string(line) + "\r\n");
      ASSERT_TRUE(t->ended());
      EXPECT_EQ(t->why().effect, effect::unknown) << name << ": " << line;
    }
    for (auto const* line :
         {"NOSCRIPT No matching script. Please use EVAL.", "LOADING Redis is loading the dataset in memory",
          "NOAUTH Authentication required.",
          "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
          "NOPERM this user has no permissions to run the 'eval' command"}) {
      scripted_link l;
      l.make_idle();
      auto const t = l.call(command(name, "x", 0));
      l.answer("-" + std::string(line) + "\r\n");
      EXPECT_EQ(t->why().effect, effect::none) << "said before the script began: " << line;
    }
  }
}

// --- a primary that became a replica ---

TEST(core_server_states, C47_a_read_only_answer_retires_the_connection_after_what_is_pending) {
  scripted_link l;
  l.make_idle();
  auto const first = l.call(command("SET", "a", 1));
  l.written();
  auto const second = l.get("b");
  l.written();
  auto const third = l.call(command("SET", "c", 1));
  l.written();
  l.receive(readonly);
  EXPECT_EQ(first->why().server, server_errc::readonly);
  EXPECT_EQ(first->why().effect, effect::none);
  auto const fourth = l.call(command("SET", "d", 1));
  EXPECT_FALSE(l.writing()) << "no new call on a connection that leads to a replica";
  EXPECT_EQ(l.count(action::drop), 0u) << "the pending ones may finish";
  l.receive(bulk("v"));
  EXPECT_EQ(second->value.as_string(), "v");
  l.receive(readonly);
  EXPECT_EQ(third->why().server, server_errc::readonly);
  EXPECT_EQ(l.count(action::drop), 1u);
  EXPECT_EQ(l.count(action::resolve), 1u) << "the name may lead elsewhere now";
  l.make_ready();
  l.answer("+OK\r\n");
  EXPECT_FALSE(fourth->error);
  EXPECT_EQ(l.core->snapshot().retired, 1u);
  EXPECT_EQ(l.sent.find("d"), l.sent.rfind("d")) << "sent once";
}

TEST(core_server_states, C47_a_target_that_is_meant_to_be_read_only_causes_no_storm) {
  scripted_link l;
  l.make_idle();
  auto const end = l.time + 5s;
  int calls = 0;
  while (l.time < end) {
    auto const t = l.call(command("SET", "k", "v"));
    ++calls;
    if (l.core->snapshot().state != link_state::ready) l.make_ready();
    l.answer(readonly);
    ASSERT_TRUE(t->ended());
    EXPECT_EQ(t->why().server, server_errc::readonly) << "each call gets the truth";
    l.advance(5ms);
  }
  EXPECT_EQ(calls, 1000);
  // 10, 20, 40, 80, 160 and then every 250 ms.
  EXPECT_LE(l.core->snapshot().retired, 26u);
  EXPECT_GE(l.core->snapshot().retired, 10u);
}

TEST(core_server_states, C47_a_script_that_met_a_read_only_server_retires_it_too) {
  scripted_link l;
  l.make_idle();
  (void)l.call(command("EVALSHA", "x", 0));
  l.answer("-READONLY You can't write against a read only replica. script: 8d1d, on @user_script:1.\r\n");
  EXPECT_EQ(l.count(action::drop), 1u);
  EXPECT_EQ(l.core->snapshot().retired, 1u);
}

// --- handshakes that are refused ---

TEST(core_server_states, C40_a_wrong_password) {
  redoubt::client_options o;
  o.login.password = "S3cr3t-pw";
  scripted_link l(o);
  constexpr std::string_view refusal = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
  auto const end = l.time + 5s;
  std::size_t calls = 0;
  while (l.time < end) {
    auto const t = l.get("k");
    ++calls;
    if (l.core->snapshot().state == link_state::resolving) {
      l.resolved();
      l.connected();
      l.written();
      l.receive(std::string(refusal) +
                "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n");
    }
    ASSERT_EQ(t->ends, 1) << "at once";
    EXPECT_EQ(t->why().server, server_errc::wrongpass) << "not what the steps after it were answered";
    EXPECT_EQ(t->why().group(), failure_class::misconfigured);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_EQ(t->why().message().find("S3cr3t"), std::string::npos);
    EXPECT_FALSE(l.connected_now()) << "the connection is closed";
    l.advance(5ms);
  }
  EXPECT_EQ(calls, 1000u);
  EXPECT_LE(l.core->snapshot().attempts, 12u);
  EXPECT_GE(l.core->snapshot().attempts, 5u);
  EXPECT_EQ(l.sent, "") << "no call was ever sent";
}

TEST(core_server_states, C43_max_clients_arrives_unasked_and_then_the_connection_ends) {
  scripted_link l;
  auto const end = l.time + 5s;
  while (l.time < end) {
    auto const t = l.get("k");
    if (l.core->snapshot().state == link_state::resolving) {
      l.resolved();
      l.connected();
      l.receive("-ERR max number of clients reached\r\n");
    }
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().server, server_errc::max_clients);
    EXPECT_EQ(t->why().effect, effect::none);
    l.advance(5ms);
  }
  EXPECT_LE(l.core->snapshot().attempts, 12u);
  // A place is free again.
  l.advance(1s);
  auto const t = l.get("k");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_server_states, a_handshake_in_pieces_is_a_handshake) {
  redoubt::client_options o;
  o.login = {.user = "u", .password = "p", .database = 3, .client_name = "shop"};
  std::string_view const greeting = "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n";
  for (std::size_t cut = 0; cut <= greeting.size(); ++cut) {
    scripted_link l(o);
    auto const t = l.get("k");
    l.resolved();
    l.connected();
    l.written(10);
    l.receive(greeting.substr(0, cut));
    EXPECT_FALSE(l.sent.find("GET") != std::string::npos && cut < greeting.size())
        << "no call before its end";
    if (cut < greeting.size()) l.receive(greeting.substr(cut));
    EXPECT_EQ(l.sent, "") << "its own bytes are not all written yet";
    l.written();
    l.answer(bulk("v"));
    EXPECT_EQ(t->value.as_string(), "v") << cut;
  }
}

TEST(core_server_states, the_reply_to_a_call_may_come_with_the_end_of_the_handshake_never) {
  scripted_link l;
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.written();
  l.receive("+OK\r\n+PONG\r\n" + bulk("for somebody else"));
  EXPECT_FALSE(t->ended()) << "it was not sent yet, so nothing can be its answer";
  EXPECT_EQ(l.count(action::drop), 1u);
}

// --- replies that cannot be followed ---

TEST(core_server_states, C63_one_reply_that_is_too_large) {
  redoubt::client_options o;
  o.bounds.reply_bytes = 1 << 20;
  scripted_link l(o);
  l.make_idle();
  auto const before = l.get("a");
  l.written();
  auto const big = l.get("big");
  l.written();
  auto const behind = l.get("c");
  l.written();
  l.receive(bulk("1") + "$67108864\r\nxxxx");
  EXPECT_EQ(before->value.as_string(), "1");
  ASSERT_TRUE(big->ended() && behind->ended());
  EXPECT_EQ(big->why().code, errc::reply_too_large);
  EXPECT_EQ(big->why().effect, effect::unknown);
  EXPECT_NE(big->why().message().find("67108864"), std::string::npos) << big->why();
  EXPECT_EQ(behind->why().code, errc::connection_lost) << "it is not to blame";
  EXPECT_EQ(behind->why().effect, effect::unknown);
  auto const next = l.get("d");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(next->value.as_string(), "v");
}

TEST(core_server_states, C63_asking_for_it_again_and_again_makes_nobody_wait) {
  redoubt::client_options o;
  o.bounds.reply_bytes = 1 << 20;
  scripted_link l(o);
  for (int i = 0; i < 20; ++i) {
    auto const big = l.get("big");
    ASSERT_FALSE(big->ended()) << i << ": " << big->why() << " (the server is alive and answers)";
    l.make_ready();
    l.answer("$67108864\r\nxxxx");
    ASSERT_EQ(big->ends, 1);
    EXPECT_EQ(big->why().code, errc::reply_too_large);
  }
}

TEST(core_server_states, C63_the_part_that_was_too_large_does_not_leak_into_the_next_connection) {
  redoubt::client_options o;
  o.bounds.array_elements = 2;
  scripted_link l(o);
  l.make_idle();
  (void)l.get("a");
  l.answer("*2\r\n:1\r\n*9\r\n");
  auto const t = l.get("b");
  l.make_ready();
  l.answer(":5\r\n");
  EXPECT_EQ(t->value.as_integer(), 5);
}

TEST(core_server_states, half_a_reply_does_not_leak_into_the_next_connection) {
  scripted_link l;
  l.make_idle();
  (void)l.get("a");
  l.answer("*3\r\n$5\r\nab");
  l.broken();
  auto const t = l.get("b");
  l.make_ready();
  l.answer(":5\r\n");
  EXPECT_EQ(t->value.as_integer(), 5);
}

TEST(core_server_states, C66_a_peer_that_is_not_redis) {
  constexpr std::string_view http = "HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n";
  {
    scripted_link l;
    auto const t = l.get("k");
    l.resolved();
    l.connected();
    l.written();
    l.receive(http);
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().code, errc::protocol_error);
    EXPECT_EQ(t->why().phase, phase::handshake);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_NE(t->why().message().find("0x48"), std::string::npos) << t->why();
    EXPECT_TRUE(l.get("k")->ended()) << "and the next one is told at once";
  }
  scripted_link l;
  l.make_idle();
  auto const t = l.get("k");
  l.answer(http);
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ(t->why().code, errc::protocol_error);
  EXPECT_EQ(t->why().phase, phase::read);
  EXPECT_EQ(t->why().effect, effect::unknown);
}

TEST(core_server_states, a_reply_that_nobody_asked_for_ends_the_connection) {
  scripted_link l;
  l.make_idle();
  l.receive(bulk("surprise"));
  EXPECT_EQ(l.count(action::drop), 1u);
  auto const t = l.get("k");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_server_states, several_replies_of_one_call_stay_together) {
  scripted_link l;
  l.make_idle();
  auto const p = l.call(command("MULTI"), {.replies = 3});
  l.written();
  auto const g = l.get("k");
  l.written();
  l.receive("+OK\r\n+QUEU");
  EXPECT_FALSE(p->ended());
  l.receive("ED\r\n*1\r\n:1\r\n" + bulk("v"));
  ASSERT_TRUE(p->ended() && g->ended());
  ASSERT_EQ(p->values.size(), 3u);
  EXPECT_EQ(p->values[2].as_array().size(), 1u);
  EXPECT_EQ(g->value.as_string(), "v");
}

TEST(core_server_states, C56_an_error_inside_several_replies_is_no_failure_of_the_call) {
  scripted_link l;
  l.make_idle();
  auto const p = l.call(command("GET", "a"), {.replies = 3});
  l.answer(bulk("1") + "-OOM command not allowed when used memory > 'maxmemory'.\r\n" + bulk("2"));
  ASSERT_TRUE(p->ended());
  EXPECT_FALSE(p->error);
  EXPECT_EQ(p->values[1].as_error().code, server_errc::oom);
}

}  // namespace
