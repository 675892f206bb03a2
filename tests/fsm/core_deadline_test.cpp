// SPDX-License-Identifier: BSL-1.0
//
// Time on one connection: limits, pauses, the write gate, stalls. All in exact virtual time.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::command;
using redoubt::deadline;
using redoubt::effect;
using redoubt::errc;
using redoubt::link_state;
using redoubt::phase;
using test::scripted_link;
using test::ticket;
using action = scripted_link::action;

constexpr std::string_view ok = "+OK\r\n";

TEST(core_deadline, C10_a_slow_reply_ends_the_call_not_the_wait) {
  scripted_link l;
  l.make_idle();
  auto const t = l.call(command("GET", "k"), {.budget = 25ms});
  l.written();
  l.advance(200ms);
  EXPECT_EQ(t->at, l.time - 175ms);
  EXPECT_EQ(t->why().code, errc::deadline_exceeded);
  EXPECT_EQ(t->why().phase, phase::read);
  l.receive("$1\r\nv\r\n");
  EXPECT_EQ(t->ends, 1);
  EXPECT_EQ(l.core->snapshot().discarded_replies, 1u);
  EXPECT_EQ(l.count(action::drop), 0u);
}

TEST(core_deadline, the_default_limits_hold_without_any_option) {
  scripted_link l;
  l.make_idle();
  auto const t = l.get("k");
  l.written();
  l.advance(1s);
  EXPECT_EQ(t->why().elapsed, 100ms) << "timeouts.attempt";
  scripted_link fresh;
  auto const u = fresh.get("k");
  fresh.resolved();
  fresh.advance(60ms);
  fresh.connected();
  fresh.written();
  fresh.receive("+OK\r\n+PONG\r\n");
  fresh.written();
  fresh.advance(1s);
  EXPECT_EQ(u->why().elapsed, 150ms) << "timeouts.call covers connecting and attempt together";
}

// One dial serves everybody, and nobody waits for it longer than his own limit.
TEST(core_deadline, C12_nobody_overshoots_behind_a_dial_that_hangs) {
  scripted_link l({.timeouts = {.connect = 1s, .attempt = 100ms, .call = 150ms}});
  std::vector<std::pair<ticket, redoubt::duration>> calls;
  for (int i = 0; i < 100; ++i) {
    auto const budget = std::chrono::milliseconds(20 + 180 * i / 99);
    calls.emplace_back(l.call(command("GET", i), {.budget = budget}), budget);
    if (i == 0) l.resolved();
  }
  EXPECT_EQ(l.count(action::connect), 1u);
  l.advance(300ms);
  for (auto const& [t, budget] : calls) {
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().elapsed, budget);
    EXPECT_EQ(t->why().phase, phase::connect);
    EXPECT_EQ(t->why().effect, effect::none);
  }
  // The dial is still under way; it serves the next call as soon as it succeeds.
  auto const next = l.get("k");
  EXPECT_EQ(l.count(action::connect), 1u);
  l.connected();
  l.written();
  l.receive("+OK\r\n+PONG\r\n");
  l.answer("$1\r\nv\r\n");
  ASSERT_EQ(next->ends, 1);
  EXPECT_EQ(next->value.as_string(), "v");
  l.expect_quiet();
}

TEST(core_deadline, C12_the_same_behind_a_server_that_accepts_and_says_nothing) {
  scripted_link l;
  std::vector<std::pair<ticket, redoubt::duration>> calls;
  for (int i = 0; i < 100; ++i) {
    auto const budget = std::chrono::milliseconds(20 + 180 * i / 99);
    calls.emplace_back(l.call(command("GET", i), {.budget = budget}), budget);
  }
  l.resolved();
  l.connected();
  l.written();
  l.advance(500ms);
  for (auto const& [t, budget] : calls) {
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().elapsed, budget);
    EXPECT_EQ(t->why().phase, phase::handshake);
  }
  EXPECT_EQ(l.count(action::connect), 1u);
  auto const next = l.get("k");
  l.receive("+OK\r\n+PONG\r\n");
  EXPECT_TRUE(l.writing()) << "the first byte after the pause makes it ready";
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(next->value.as_string(), "v");
}

TEST(core_deadline, C20_a_write_that_cannot_proceed) {
  scripted_link l;
  l.make_idle();
  auto const set = l.call(command("SET", "k", std::string(8 << 20, 'x')), {.budget = 200ms});
  ASSERT_TRUE(set);
  l.written(300'000);  // and then the peer reads no more
  auto const begun = l.time;
  auto const get = l.call(command("GET", "x"), {.budget = 100ms});
  l.advance(100ms);
  ASSERT_EQ(get->ends, 1);
  EXPECT_EQ(get->why().phase, phase::queue);
  EXPECT_EQ(get->why().effect, effect::none);
  EXPECT_FALSE(set->ended());
  EXPECT_EQ(l.count(action::drop), 0u);
  l.advance(100ms);
  ASSERT_EQ(set->ends, 1);
  EXPECT_EQ(set->at, begun + 200ms);
  EXPECT_EQ(set->why().phase, phase::write);
  EXPECT_EQ(set->why().effect, effect::unknown);
  EXPECT_EQ(l.count(action::drop), 1u) << "half a command cannot be taken back";
  auto const next = l.get("y");
  EXPECT_EQ(l.last(action::resolve)->epoch, l.epoch());
  l.make_ready();
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(next->value.as_string(), "v");
  EXPECT_EQ(l.sent.find("GET\r\n$1\r\nx"), std::string::npos);
}

TEST(core_deadline, C03_cancelling_one_of_three_that_are_half_written_leaves_the_others_alone) {
  for (std::size_t first : {0u, 1u, 20u, 30u, 40u, 60u}) {
    for (std::size_t second : {0u, 1u, 15u, 20u}) {
      scripted_link l;
      l.make_idle();
      auto const blocker = l.get("0");
      auto const a = l.get("a");
      auto const b = l.call(command("GET", "b"), {.cancel_key = 5});
      auto const c = l.get("c");
      l.answer("$1\r\n0\r\n");
      ASSERT_TRUE(l.writing()) << "the three go out together";
      l.written(first);
      l.cancel(5);
      ASSERT_EQ(b->ends, 1);
      EXPECT_EQ(b->why().effect, effect::unknown);
      if (l.unwritten() > second) l.written(second);
      if (l.unwritten() > 0) l.written();
      l.receive("$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
      ASSERT_TRUE(a->ended() && c->ended()) << first << " " << second;
      EXPECT_EQ(a->value.as_string(), "a");
      EXPECT_EQ(c->value.as_string(), "c");
      EXPECT_EQ(l.count(action::drop), 0u) << first << " " << second;
      (void)blocker;
    }
  }
}

TEST(core_deadline, C22_no_connect_timer_is_left_armed) {
  scripted_link l({.timeouts = {.connect = 200ms, .attempt = 100ms, .call = 150ms}});
  auto const t = l.call(command("GET", "k"), {.budget = 1000ms});
  l.resolved();
  l.advance(10ms);
  l.connected();
  l.written();
  l.receive("+OK\r\n+PONG\r\n");
  l.written();
  l.advance(390ms);
  EXPECT_FALSE(t->ended());
  l.receive("$1\r\nv\r\n");
  EXPECT_EQ(t->value.as_string(), "v");
  EXPECT_EQ(t->at - (l.time - 400ms), 400ms);
  EXPECT_EQ(l.count(action::drop), 0u);
}

TEST(core_deadline, C24_a_read_is_sent_once_and_no_more) {
  scripted_link l;
  l.make_idle();
  auto const t = l.get("k");
  l.written();
  l.advance(5s);
  EXPECT_EQ(t->ends, 1);
  EXPECT_EQ(l.sent, command("GET", "k").wire());
}

TEST(core_deadline, C31_a_command_whose_connection_ends_is_not_sent_again) {
  scripted_link l;
  l.make_idle();
  auto const t = l.call(command("INCR", "c"));
  auto const waiting = l.get("k");  // behind a write that is not reported yet
  l.broken();
  EXPECT_EQ(t->why().code, errc::connection_lost);
  EXPECT_EQ(t->why().effect, effect::unknown);
  l.make_ready();
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(waiting->value.as_string(), "v");
  EXPECT_EQ(l.sent, std::string(command("INCR", "c").wire()) + std::string(command("GET", "k").wire()));
}

TEST(core_deadline, C32_what_timed_out_is_not_sent_later) {
  scripted_link l;
  auto const set = l.call(command("SET", "k", "v"), {.budget = 100ms});
  l.resolved();
  l.advance(99ms);
  EXPECT_FALSE(set->ended());
  l.advance(1ms);
  ASSERT_EQ(set->ends, 1);
  EXPECT_EQ(set->why().effect, effect::none);
  l.advance(200ms);
  auto const get = l.get("other");  // the server is back
  l.make_ready();
  l.answer("$-1\r\n");
  EXPECT_TRUE(get->value.is_nil());
  EXPECT_EQ(l.sent, command("GET", "other").wire());
}

// A thread that is busy serves the socket before the timer: what has expired meanwhile must not go out.
TEST(core_deadline, C32_not_even_when_the_timer_is_late) {
  scripted_link l;
  auto const set = l.call(command("SET", "k", "v"), {.budget = 50ms});
  l.resolved();
  l.connected();
  l.written();
  l.busy(60ms);
  l.receive("+OK\r\n+PONG\r\n");
  l.advance(1ms);
  ASSERT_EQ(set->ends, 1);
  EXPECT_EQ(set->why().effect, effect::none);
  EXPECT_EQ(l.sent, "");
}

TEST(core_deadline, C57_writes_paused_and_reads_fine) {
  scripted_link l;
  l.make_idle();
  auto const set = l.call(command("SET", "k", "v"), {.budget = 300ms});
  l.written();
  l.advance(300ms);
  ASSERT_EQ(set->ends, 1);
  EXPECT_EQ(set->why().phase, phase::read);
  EXPECT_EQ(set->why().effect, effect::unknown) << "it will be applied";
  l.receive(ok);
  EXPECT_EQ(l.core->snapshot().discarded_replies, 1u);
  auto const get = l.get("k");
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(get->value.as_string(), "v");
}

// The demonstration of the paused server in small: most calls end with effect none and are never executed.
TEST(core_deadline, a_pause_lets_out_only_what_was_sent_before_it_was_noticed) {
  scripted_link l;
  l.make_idle();
  std::vector<ticket> calls;
  auto const send = [&](int i) {
    calls.push_back(l.call(command("INCR", i)));
    if (l.writing()) l.written();
  };
  for (int i = 0; i < 50; ++i) send(i);
  for (int i = 50; i < 1050; ++i) {
    send(i);
    l.advance(5ms);
  }
  l.advance(200ms);
  std::size_t unknown = 0;
  for (auto const& t : calls) {
    ASSERT_EQ(t->ends, 1);
    EXPECT_LE(t->why().elapsed, 100ms);
    if (t->why().effect == effect::unknown) ++unknown;
  }
  // 50 at once and 20 during the attempt_timeout; then, once per stall limit, what a fresh connection is
  // given.
  EXPECT_LE(unknown, 80u);
  std::size_t executed = 0;
  for (std::size_t at = l.sent.find("INCR"); at != std::string::npos; at = l.sent.find("INCR", at + 1))
    ++executed;
  EXPECT_EQ(executed, unknown) << "what was sent says unknown, and nothing else was sent";
}

TEST(core_deadline, a_connection_that_owes_replies_for_too_long_is_given_up) {
  scripted_link l;
  l.make_idle();
  auto const slow = l.call(command("GET", "k"), {.budget = 800ms});
  l.written();
  l.advance(800ms);
  EXPECT_EQ(slow->why().code, errc::deadline_exceeded);
  EXPECT_EQ(l.count(action::drop), 0u);
  l.advance(199ms);
  EXPECT_EQ(l.count(action::drop), 0u);
  l.advance(1ms);
  EXPECT_EQ(l.count(action::drop), 1u) << "the stall limit";
  EXPECT_EQ(l.core->snapshot().state, link_state::idle) << "nobody waits, so nothing is made";
  EXPECT_FALSE(l.armed);
}

TEST(core_deadline, a_call_that_may_take_longer_than_the_stall_limit_is_waited_for) {
  scripted_link l;
  l.make_idle();
  auto const slow = l.call(command("GET", "k"), {.budget = 3s});
  l.written();
  l.advance(2900ms);
  EXPECT_EQ(l.count(action::drop), 0u);
  l.receive("$1\r\nv\r\n");
  EXPECT_EQ(slow->value.as_string(), "v");
}

TEST(core_deadline, too_many_late_replies_give_the_connection_up_at_once) {
  redoubt::client_options o;
  o.bounds.late_replies = 3;
  scripted_link l(o);
  l.make_idle();
  for (std::uint64_t i = 1; i <= 4; ++i) {
    (void)l.call(command("GET", i), {.cancel_key = i});
    if (l.writing()) l.written();
  }
  for (std::uint64_t i = 1; i <= 3; ++i) l.cancel(i);
  EXPECT_EQ(l.count(action::drop), 0u);
  l.cancel(4);
  EXPECT_EQ(l.count(action::drop), 1u) << "memory is bounded now, not at the next timer";
}

// C01, ten thousand times: callers leave at random moments, and no reply ever goes to another one.
TEST(core_deadline, C01_random_cancels_shift_nothing) {
  redoubt::random_source random(1);
  scripted_link l;
  l.make_idle();
  std::string owed;  // what the server has still to say
  std::uint64_t key = 1;
  std::uint64_t cancelled_after_write = 0;
  std::vector<std::pair<ticket, std::string>> live;
  for (int i = 0; i < 10'000; ++i) {
    auto const text = std::to_string(i);
    auto const mine = key++;
    auto const t = l.call(command("GET", text), {.cancel_key = mine});
    auto const other = l.call(command("GET", "b" + text));
    auto const answer = [](std::string const& v) {
      return "$" + std::to_string(v.size()) + "\r\n" + v + "\r\n";
    };
    auto const before = l.sent.size();
    bool const early = random.chance(1, 3);
    if (!early && l.writing()) l.written();
    l.advance(std::chrono::milliseconds(random.below(20)));
    if (random.chance(1, 2)) {
      bool const was_sent = l.sent.find("\r\n" + text + "\r\n") != std::string::npos;
      l.cancel(mine);
      ASSERT_EQ(t->ends, 1);
      ASSERT_EQ(t->why().effect, was_sent ? effect::unknown : effect::none);
      cancelled_after_write += was_sent ? 1 : 0;
    }
    (void)before;
    while (l.writing()) l.written();
    // The server answers everything it was sent, in order.
    std::string replies;
    for (std::size_t at = 0; (at = l.sent.find("GET\r\n$", at)) != std::string::npos;) {
      at = l.sent.find("\r\n", at + 5) + 2;
      auto const end = l.sent.find("\r\n", at);
      replies += answer(l.sent.substr(at, end - at));
    }
    l.sent.clear();
    l.receive(replies);
    while (l.writing()) {
      l.written();
      std::string more;
      for (std::size_t at = 0; (at = l.sent.find("GET\r\n$", at)) != std::string::npos;) {
        at = l.sent.find("\r\n", at + 5) + 2;
        auto const end = l.sent.find("\r\n", at);
        more += answer(l.sent.substr(at, end - at));
      }
      l.sent.clear();
      l.receive(more);
    }
    ASSERT_EQ(other->ends, 1);
    ASSERT_EQ(other->value.as_string(), "b" + text);
    ASSERT_EQ(t->ends, 1);
    if (!t->error) {
      ASSERT_EQ(t->value.as_string(), text);
    }
  }
  EXPECT_EQ(l.core->snapshot().discarded_replies, cancelled_after_write);
  EXPECT_EQ(l.core->snapshot().attempts, 1u) << "one connection all the time";
  EXPECT_GT(cancelled_after_write, 1000u);
  l.expect_quiet();
}

}  // namespace
