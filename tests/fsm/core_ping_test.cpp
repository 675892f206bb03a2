// SPDX-License-Identifier: BSL-1.0
//
// The connection's own PING. C27: a peer that has gone in silence is found, a healthy one is never given up.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "queue_rig.hpp"
#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::client_options;
using redoubt::command;
using redoubt::effect;
using redoubt::errc;
using redoubt::link_state;
using redoubt::matched_reply;
using redoubt::phase;
using test::queue_rig;
using test::scripted_link;
using action = scripted_link::action;

constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";

client_options every_second() {
  client_options out;
  out.reconnect.ping_interval = 1s;
  out.reconnect.stall_limit = 200ms;
  return out;
}

TEST(core_ping, C27_an_idle_connection_is_asked_once_per_interval_and_never_given_up) {
  scripted_link l(every_second());
  l.make_idle();
  for (int i = 0; i < 60; ++i) {
    l.advance(999ms);
    EXPECT_FALSE(l.writing()) << "early, round " << i;
    l.advance(1ms);
    ASSERT_TRUE(l.writing()) << "round " << i;
    EXPECT_EQ(l.last(action::write)->bytes, ping);
    EXPECT_EQ(l.gate->calls(), 0u) << "it takes nobody's room";
    l.answer("+PONG\r\n");
  }
  auto const s = l.core->snapshot();
  EXPECT_EQ(s.lost, 0u);
  EXPECT_EQ(s.started, 1u) << "only the call before";
  EXPECT_EQ(s.discarded_replies, 0u);
  EXPECT_EQ(s.late_owed, 0u);
  EXPECT_TRUE(l.events.empty());
}

TEST(core_ping, C27_a_peer_that_is_gone_is_found_within_interval_and_stall_limit) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written();
  EXPECT_EQ(l.core->snapshot().late_owed, 0u);
  l.advance(199ms);
  EXPECT_EQ(l.core->snapshot().lost, 0u);
  l.advance(1ms);
  EXPECT_EQ(l.core->snapshot().lost, 1u);
  EXPECT_EQ(l.core->snapshot().state, link_state::idle) << "nobody wants another one";
  ASSERT_EQ(l.events.size(), 1u);
  EXPECT_EQ(l.events[0].cause->code, errc::connection_stalled);
  l.advance(1min);
  EXPECT_EQ(l.count(action::resolve), 0u);
  l.expect_quiet();
}

TEST(core_ping, C27_also_one_that_does_not_even_take_the_ping) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written(3);
  l.advance(200ms);
  EXPECT_EQ(l.core->snapshot().lost, 1u);
}

TEST(core_ping, C27_goes_on_on_every_new_connection) {
  scripted_link l(every_second());
  l.make_idle();
  for (int i = 0; i < 3; ++i) {
    l.advance(1s);
    EXPECT_TRUE(l.writing());
    l.answer("+PONG\r\n");
    l.broken();
    auto const t = l.get("k");
    l.make_ready();
    l.answer("$1\r\nv\r\n");
    EXPECT_EQ(t->value.as_string(), "v");
  }
  l.advance(1s);
  EXPECT_TRUE(l.writing());
}

TEST(core_ping, C27_bytes_of_calls_are_a_sign_of_life) {
  scripted_link l(every_second());
  l.make_idle();
  for (int i = 0; i < 100; ++i) {
    l.advance(600ms);
    auto const t = l.get("k");
    l.answer("$1\r\nv\r\n");
    ASSERT_EQ(t->ends, 1);
  }
  EXPECT_EQ(l.sent.find("PING"), std::string::npos);
  EXPECT_EQ(l.core->snapshot().lost, 0u);
}

TEST(core_ping, C27_a_ping_that_is_late_behind_a_stream_of_replies_costs_nothing) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written();
  // The server answers in pieces, none of them longer apart than the stall limit.
  for (char const c : std::string_view("+PON")) {
    l.advance(150ms);
    l.receive({&c, 1});
  }
  auto const t = l.call(command("GET", "k"), {.budget = 900ms});
  l.written();
  l.receive("G\r\n$1\r\nv\r\n");
  EXPECT_EQ(t->value.as_string(), "v") << "and the replies match";
  EXPECT_EQ(l.core->snapshot().lost, 0u);
}

TEST(core_ping, any_answer_to_it_will_do) {
  scripted_link l(every_second());
  l.make_idle();
  for (std::string_view const reply :
       {"-LOADING Redis is loading the dataset in memory\r\n", "-READONLY no\r\n",
        "-NOAUTH Authentication required.\r\n", "$4\r\nPONG\r\n"}) {
    l.advance(1s);
    l.answer(reply);
    EXPECT_EQ(l.core->snapshot().state, link_state::ready) << reply;
  }
}

TEST(core_ping, an_overdue_one_closes_the_write_gate) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written();
  l.advance(100ms);  // attempt_timeout: by now it should have been answered
  auto const t = l.call(command("SET", "k", "v"), {.budget = 50ms});
  l.advance(50ms);
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ(t->why().phase, phase::queue);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_EQ(l.sent.find("SET"), std::string::npos);
  l.receive("+PONG\r\n");
  auto const u = l.get("k");
  l.answer("$-1\r\n");
  EXPECT_EQ(u->ends, 1);
}

TEST(core_ping, a_call_that_comes_meanwhile_goes_behind_it) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  auto const t = l.get("k");  // the PING is still being written
  l.written();
  ASSERT_TRUE(l.writing());
  l.written();
  l.receive("+PONG\r\n$1\r\nv\r\n");
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_ping, closing_does_not_wait_for_it) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written();
  l.close(redoubt::deadline(l.time + 1min));
  EXPECT_EQ(l.core->snapshot().state, link_state::closed);
  EXPECT_FALSE(l.armed);
}

TEST(core_ping, the_end_of_the_connection_forgets_it) {
  scripted_link l(every_second());
  l.make_idle();
  l.advance(1s);
  l.written();
  l.broken();
  auto const t = l.get("k");
  l.make_ready();
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(t->value.as_string(), "v");
  EXPECT_EQ(l.core->snapshot().late_owed, 0u);
}

TEST(core_ping, C27_a_healthy_server_that_takes_400_ms_is_never_given_up) {
  client_options options;
  options.timeouts = {.connect = 1s, .attempt = 600ms, .call = 1s};
  scripted_link l(options);
  l.make_idle();
  auto const start = l.time;
  for (int i = 0; l.time - start < 5min; ++i) {
    auto const t = l.get("k");
    l.written();
    l.advance(400ms);
    l.receive("$1\r\nv\r\n");
    ASSERT_EQ(t->ends, 1) << i;
    ASSERT_FALSE(t->error) << i;
    if (i % 10 != 0) continue;
    l.advance(5s);  // idle long enough to be asked
    ASSERT_TRUE(l.writing()) << i;
    l.written();
    l.advance(400ms);
    l.receive("+PONG\r\n");
  }
  EXPECT_EQ(l.core->snapshot().lost, 0u);
  EXPECT_EQ(l.core->snapshot().expired, 0u);
}

TEST(call_queue_own, is_idle_only_when_nothing_is_owed_waits_or_is_written) {
  queue_rig r;
  EXPECT_FALSE(r.q.idle_since()) << "not ready";
  r.ready();
  EXPECT_EQ(r.q.idle_since(), r.now);
  r.submit(1);
  EXPECT_FALSE(r.q.idle_since());
  (void)r.take();
  EXPECT_FALSE(r.q.idle_since());
  r.written(4);
  (void)r.reply();
  EXPECT_FALSE(r.q.idle_since()) << "the rest of the write has not been reported";
  r.written(6);
  r.advance(3s);
  EXPECT_EQ(r.q.idle_since(), r.now - 3s);
  r.lose();
  EXPECT_FALSE(r.q.idle_since());
}

TEST(call_queue_own, is_counted_nowhere) {
  queue_rig r({.tombstones = 1});
  r.ready();
  r.q.stage_own(14, r.now);
  r.checked();
  EXPECT_EQ(r.q.snapshot().owed, 0u);
  EXPECT_EQ(r.q.snapshot().tombstones, 0u);
  EXPECT_TRUE(r.q.idle());
  EXPECT_FALSE(r.q.settled());
  r.written(14);
  auto const id = r.sent(1);
  ASSERT_TRUE(r.cancel(id));
  EXPECT_FALSE(r.q.crowded()) << "one tombstone is allowed";
  EXPECT_EQ(r.reply().what, matched_reply::kind::own);
  EXPECT_EQ(r.reply().what, matched_reply::kind::discarded);
  EXPECT_EQ(r.reply().what, matched_reply::kind::unexpected);
  EXPECT_EQ(r.q.snapshot().discarded_replies, 1u);
}

}  // namespace
