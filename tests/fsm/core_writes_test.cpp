// SPDX-License-Identifier: BSL-1.0
//
// Writes that end where they begin, because the socket's buffer has room, in whole or in part.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::command;
using redoubt::effect;
using redoubt::errc;
using redoubt::link_state;
using test::scripted_link;
using test::ticket;
using action = scripted_link::action;

constexpr std::size_t plenty = 1 << 20;

TEST(core_writes, a_write_that_ends_at_once_has_no_completion) {
  scripted_link l;
  l.make_idle();
  l.room = plenty;
  auto const t = l.get("k");
  EXPECT_FALSE(l.writing());
  EXPECT_EQ(l.sent, command("GET", "k").wire());
  EXPECT_EQ(l.core->snapshot().owed, 1u);
  l.receive("$1\r\nv\r\n");
  ASSERT_TRUE(t->ended());
  EXPECT_EQ(t->value.as_string(), "v");
  EXPECT_EQ(l.count(action::write), 1u);
}

TEST(core_writes, the_handshake_may_end_at_once_as_well) {
  scripted_link l;
  l.room = plenty;
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  EXPECT_FALSE(l.writing());
  l.receive("+OK\r\n+PONG\r\n");
  EXPECT_EQ(l.core->snapshot().state, link_state::ready);
  l.receive("$1\r\nv\r\n");
  EXPECT_EQ(t->ends, 1);
}

TEST(core_writes, what_does_not_fit_waits_for_its_completion) {
  scripted_link l;
  l.make_idle();
  auto const whole = command("SET", "k", std::string(100, 'v'));
  for (std::size_t room = 1; room < whole.wire().size(); ++room) {
    l.log.clear();
    l.sent.clear();
    l.room = room;
    auto const t = l.call(whole);
    EXPECT_TRUE(l.writing()) << room;
    EXPECT_EQ(l.unwritten(), whole.wire().size() - room);
    EXPECT_EQ(l.last(action::write)->bytes, whole.wire().substr(room)) << "the rest, and nothing else";
    EXPECT_EQ(l.sent, whole.wire());
    l.written();
    l.receive("+OK\r\n");
    EXPECT_EQ(t->ends, 1);
  }
}

TEST(core_writes, batch_after_batch_in_one_turn_while_there_is_room) {
  scripted_link l;
  l.make_idle();
  l.room = plenty;
  std::vector<ticket> calls;
  std::string expected;
  std::string answers;
  for (int i = 0; i < 10; ++i) {
    auto const c = command("SET", "k" + std::to_string(i), std::string(20'000, 'v'));
    expected += c.wire();
    answers += "+OK\r\n";
    calls.push_back(l.leave(c, {}));
  }
  l.wake();
  EXPECT_GT(l.count(action::write), 2u) << "more than a batch";
  EXPECT_EQ(l.sent, expected) << "all of it, in order";
  EXPECT_EQ(l.core->snapshot().waiting, 0u);
  l.receive(answers);
  EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](auto const& t) { return t->ends == 1; }));
  l.expect_sum();
}

TEST(core_writes, a_full_buffer_ends_the_turn_and_keeps_the_rest_unsent) {
  scripted_link l;
  l.make_idle();
  auto const c = command("SET", "k", std::string(40'000, 'v'));
  l.room = c.wire().size() + 1;
  auto const first = l.leave(c, {});
  auto const second = l.leave(c, {});
  auto const third = l.leave(c, {});
  l.wake();
  EXPECT_TRUE(l.writing());
  EXPECT_EQ(l.core->snapshot().waiting, 1u);
  EXPECT_EQ(l.core->snapshot().owed, 2u);
  l.receive("+OK\r\n");
  EXPECT_EQ(first->ends, 1);
  l.advance(1s);
  ASSERT_EQ(second->ends, 1);
  EXPECT_EQ(second->why().code, errc::deadline_exceeded);
  EXPECT_EQ(second->why().effect, effect::unknown) << "a part of it has gone out";
  ASSERT_EQ(third->ends, 1);
  EXPECT_EQ(third->why().effect, effect::none);
}

TEST(core_writes, idle_pings_end_at_once_as_well) {
  scripted_link l;
  l.make_idle();
  l.room = plenty;
  l.advance(l.options.reconnect.ping_interval + 1ms);
  EXPECT_EQ(l.count(action::write), 1u);
  EXPECT_FALSE(l.writing());
  l.receive("+PONG\r\n");
  EXPECT_EQ(l.core->snapshot().state, link_state::ready);
}

}  // namespace
