// SPDX-License-Identifier: BSL-1.0
//
// What the client refuses by itself, and what it hands over to its connections.
#include <redoubt/client.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "stub_connection.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::client_options;
using redoubt::command;
using redoubt::deadline;
using redoubt::effect;
using redoubt::errc;
using redoubt::phase;
using redoubt::pipeline;
using redoubt::reply;
using redoubt::result;
using redoubt::transaction;
using rig = test::client_rig;

reply integer(std::int64_t n) { return reply(n); }

TEST(client_state, C25_no_time_left_ends_at_once_without_reaching_the_connection) {
  for (auto const budget : {0ns, -1ns, -1'000'000ns, redoubt::duration::min()}) {
    rig r;
    auto const t = r.call(command("GET", "k"), {.budget = budget});
    r.run();
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().code, errc::deadline_exceeded);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_EQ(t->why().phase, phase::queue);
    EXPECT_TRUE(r.to().seen.empty());
  }
  rig r;
  auto const t = r.call(command("GET", "k"), {.by = deadline(redoubt::now(r.io.get_executor()) - 1ms)});
  r.run();
  EXPECT_EQ(t->why().code, errc::deadline_exceeded);
  EXPECT_TRUE(r.to().seen.empty());
}

TEST(client_state, C07_C08_what_cannot_share_a_connection_is_refused) {
  rig r;
  std::vector<rig::ticket<result<reply>>> all;
  for (auto const* name :
       {"MULTI", "EXEC", "WATCH", "SUBSCRIBE", "PSUBSCRIBE", "MONITOR", "SELECT", "HELLO", "AUTH", "BLPOP"}) {
    all.push_back(r.call(command(name, "x", 0)));
  }
  all.push_back(r.call(command("CLIENT", "REPLY", "OFF")));
  auto const p = r.send(pipeline(command("GET", "a"), command("SUBSCRIBE", "b")));
  auto const b = r.send(transaction(command("GET", "a"), command("BLPOP", "b", 0)));
  r.run();
  for (auto const& t : all) {
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().code, errc::refused_command);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_TRUE(t->why().rejected);
    EXPECT_EQ(t->why().group(), redoubt::failure_class::caller_error);
  }
  ASSERT_EQ(p->value->size(), 2u);
  for (auto const& one : *p->value) EXPECT_EQ(one.error().code, errc::refused_command);
  EXPECT_EQ(b->why().code, errc::refused_command);
  EXPECT_TRUE(r.to().seen.empty()) << "nothing was handed over";
  EXPECT_EQ(r.c->snapshot().in_flight, 0u);
}

TEST(client_state, C60_the_1025th_call_is_refused_at_once) {
  rig r;
  for (int i = 0; i < 1024; ++i) (void)r.call(command("GET", i));
  auto const t = r.call(command("GET", 1024));
  r.run();
  EXPECT_EQ(t->why().code, errc::queue_full);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_TRUE(t->why().rejected);
  EXPECT_EQ(r.to().seen.size(), 1024u);
  r.to().end({integer(1)});
  r.run();
  auto const next = r.call(command("GET", 1025));
  r.run();
  EXPECT_EQ(next->ends, 0) << "there is room again";
}

TEST(client_state, C63_a_command_that_can_never_fit_is_refused) {
  client_options o;
  o.bounds.queued_bytes = 2048;
  rig r(o);
  auto const t = r.call(command("SET", "k", std::string(3000, 'x')));
  r.run();
  EXPECT_EQ(t->why().code, errc::request_too_large);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_EQ(r.c->snapshot().queued_bytes, 0u);
  (void)r.call(command("SET", "k", std::string(1500, 'x')));
  auto const second = r.call(command("SET", "k", std::string(1500, 'x')));
  r.run();
  EXPECT_EQ(second->why().code, errc::queue_full) << "it would fit alone";
}

TEST(client_state, the_deadline_is_the_earliest_of_budget_and_request) {
  rig r;
  auto const now = redoubt::now(r.io.get_executor());
  (void)r.call(command("GET", "a"));
  (void)r.call(command("GET", "b"), {.budget = 2s});
  (void)r.call(command("GET", "c"), {.by = deadline(now + 30ms)});
  (void)r.call(command("GET", "d"), {.budget = 2s, .by = deadline(now + 30ms)});
  (void)r.call(command("GET", "e"), {.by = deadline(now + 1h)});
  auto const& s = r.to().seen;
  ASSERT_EQ(s.size(), 5u);
  EXPECT_EQ(s[0].by, deadline(s[0].started + 150ms));
  EXPECT_FALSE(s[0].own_budget);
  EXPECT_EQ(s[1].by, deadline(s[1].started + 2s));
  EXPECT_TRUE(s[1].own_budget);
  EXPECT_EQ(s[2].by, deadline(now + 30ms));
  EXPECT_FALSE(s[2].own_budget);
  EXPECT_EQ(s[3].by, deadline(now + 30ms));
  EXPECT_EQ(s[4].by, deadline(s[4].started + 150ms)) << "a deadline only tightens";
}

TEST(client_state, calls_take_turns_on_several_connections) {
  client_options o;
  o.connections = 3;
  rig r(o);
  for (int i = 0; i < 9; ++i) (void)r.call(command("GET", i));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(r.to(i).seen.size(), 3u);
}

TEST(client_state, C74_without_the_component_tls_a_client_that_needs_it_is_not_made) {
  boost::asio::io_context io;
  for (bool const by_url : {true, false}) {
    client_options o;
    if (by_url) {
      o.url = "rediss://:S3cr3t@h";
    } else {
      o.tls.enabled = true;
    }
    try {
      redoubt::client never(io, o);
      ADD_FAILURE() << "made";
    } catch (std::invalid_argument const& e) {
      EXPECT_NE(std::string_view(e.what()).find("redoubt::enable_tls()"), std::string_view::npos) << e.what();
      EXPECT_EQ(std::string_view(e.what()).find("S3cr3t"), std::string_view::npos);
    }
  }
}

TEST(client_state, bad_options_are_named_by_the_constructor) {
  boost::asio::io_context io;
  client_options o;
  o.login.user = "app";
  try {
    redoubt::client bad(io, o);
    FAIL() << "accepted";
  } catch (std::invalid_argument const& e) {
    EXPECT_NE(std::string_view(e.what()).find("login.user"), std::string_view::npos) << e.what();
  }
}

}  // namespace
