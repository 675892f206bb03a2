// SPDX-License-Identifier: BSL-1.0
//
// How a connection begins, comes back and is closed; and the bounds.
#include <algorithm>
#include <functional>
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
using redoubt::failure_class;
using redoubt::link_state;
using test::scripted_link;
using test::ticket;
using action = scripted_link::action;

std::string bulk(std::string_view v) {
  return "$" + std::to_string(v.size()) + "\r\n" + std::string(v) + "\r\n";
}

TEST(core_lifetime, C85_construction_touches_nothing) {
  scripted_link l;
  EXPECT_TRUE(l.log.empty());
  EXPECT_FALSE(l.armed);
  l.advance(10s);
  EXPECT_TRUE(l.log.empty());
}

TEST(core_lifetime, C85_a_server_that_is_down_at_the_start_and_comes_up) {
  scripted_link l;
  std::vector<ticket> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(l.get("k"));
    if (l.core->snapshot().state == link_state::resolving) {
      l.resolved();
      l.failed();
    }
  }
  for (auto const& t : calls) {
    ASSERT_EQ(t->ends, 1) << "C23: at once";
    EXPECT_EQ(t->why().code, errc::connection_refused);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_EQ(t->why().elapsed, 0ns);
  }
  EXPECT_FALSE(calls[0]->why().rejected);
  EXPECT_TRUE(calls[1]->why().rejected) << "while backing off";
  EXPECT_GT(calls[1]->why().retry_after, 0ns);
  EXPECT_EQ(calls[1]->why().group(), failure_class::saturated);
  l.advance(10ms);  // the first step of the backoff
  auto const t = l.get("k");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_lifetime, C23_one_attempt_on_behalf_of_a_call_and_no_wait) {
  scripted_link l;
  auto const t = l.call(command("GET", "k"), {.budget = 1000ms});
  l.resolved();
  l.failed();
  EXPECT_EQ(t->why().code, errc::connection_refused);
  EXPECT_EQ(t->why().elapsed, 0ns);
  EXPECT_EQ(l.count(action::connect), 1u);
  l.advance(5s);
  EXPECT_EQ(l.count(action::connect), 1u) << "nobody asks, nothing is done";
}

TEST(core_lifetime, results_of_an_ended_attempt_do_nothing) {
  scripted_link l;
  (void)l.get("k");
  auto const old = l.epoch();
  l.resolved();
  l.failed();
  l.advance(10ms);
  auto const t = l.get("k");
  l.make_ready();
  l.written();
  auto const before = l.log.size();
  l.core->on_resolved(old);
  l.core->on_attempt_failed(old, errc::connect_failed);
  l.core->on_connected(old);
  l.core->on_secured(old);
  l.core->on_credentials(old, redoubt::credentials{});
  l.core->on_written(old, 5);
  l.core->on_read(old, "HTTP/1.1 400\r\n");
  l.core->on_broken(old);
  EXPECT_EQ(l.log.size(), before);
  EXPECT_FALSE(t->ended());
  l.receive(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_lifetime, a_lost_connection_is_made_anew_only_when_somebody_waits) {
  scripted_link l;
  l.make_idle();
  l.broken();
  EXPECT_EQ(l.core->snapshot().state, link_state::idle);
  EXPECT_EQ(l.count(action::resolve), 0u);
  EXPECT_FALSE(l.armed);
  l.advance(10s);
  auto const t = l.get("k");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v");
}

// --- closing ---

TEST(core_lifetime, C83_draining_lets_calls_finish_and_no_new_ones_in) {
  scripted_link l;
  l.make_idle();
  auto const a = l.call(command("GET", "a"), {.budget = 400ms});
  auto const b = l.call(command("GET", "b"), {.budget = 400ms});
  l.close(deadline(l.time + 500ms));
  auto const late = l.get("c");
  ASSERT_EQ(late->ends, 1);
  EXPECT_EQ(late->why().code, errc::closed);
  EXPECT_TRUE(late->why().rejected);
  EXPECT_FALSE(l.core->closed());
  l.answer(bulk("1"));
  l.answer(bulk("2"));
  EXPECT_EQ(a->value.as_string(), "1");
  EXPECT_EQ(b->value.as_string(), "2") << "what was waiting before the close is still served";
  EXPECT_TRUE(l.core->closed()) << "as soon as nothing is under way";
  EXPECT_FALSE(l.armed) << "C82";
  EXPECT_EQ(l.log.back().what, action::drop);
}

TEST(core_lifetime, C83_draining_a_silent_server_ends_at_its_deadline) {
  scripted_link l;
  l.make_idle();
  auto const sent = l.call(command("GET", "a"), {.budget = 60s});
  l.written();
  std::vector<ticket> waiting;
  l.advance(3s);  // stalls are not the subject: the budget allows this silence
  for (int i = 0; i < 50; ++i) waiting.push_back(l.call(command("GET", i), {.budget = 60s}));
  l.close(deadline(l.time + 500ms));
  l.advance(499ms);
  EXPECT_FALSE(l.core->closed());
  l.advance(1ms);
  EXPECT_TRUE(l.core->closed());
  EXPECT_EQ(sent->why().code, errc::closed);
  EXPECT_EQ(sent->why().effect, effect::unknown);
  for (auto const& t : waiting) {
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().code, errc::closed);
  }
  EXPECT_FALSE(l.armed) << "C82: fifty calls with 60 s left, and no timer";
  l.expect_quiet();
}

TEST(core_lifetime, C83_draining_twice_takes_the_earlier_deadline) {
  scripted_link l;
  l.make_idle();
  auto const t = l.call(command("GET", "a"), {.budget = 60s});
  auto const begun = l.time;
  l.close(deadline(begun + 500ms));
  l.close(deadline(begun + 200ms));
  l.close(deadline(begun + 900ms));
  l.advance(1s);
  EXPECT_EQ(t->at, begun + 200ms);
  l.close(deadline(l.time + 1s));  // and once more when all is over
  EXPECT_TRUE(l.core->closed());
}

TEST(core_lifetime, C83_draining_while_the_connection_fails) {
  scripted_link l;
  auto const t = l.call(command("GET", "a"), {.budget = 60s});
  l.resolved();
  l.close(deadline(l.time + 500ms));
  l.failed();
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ(t->why().code, errc::connection_refused);
  EXPECT_TRUE(l.core->closed());
  EXPECT_FALSE(l.armed);
}

TEST(core_lifetime, C83_draining_with_a_full_queue) {
  redoubt::client_options o;
  o.bounds.in_flight = 8;
  scripted_link l(o);
  std::vector<ticket> all;
  for (int i = 0; i < 8; ++i) all.push_back(l.call(command("GET", i), {.budget = 60s}));
  EXPECT_EQ(l.get("k"), nullptr);
  l.resolved();
  l.connected();
  l.close(deadline(l.time + 500ms));
  l.advance(500ms);
  EXPECT_TRUE(l.core->closed());
  for (auto const& t : all) EXPECT_EQ(t->ends, 1);
  l.expect_quiet();
}

TEST(core_lifetime, C80_closing_at_once_in_every_state) {
  std::vector<std::function<void(scripted_link&)>> const ways{
      [](scripted_link&) {},
      [](scripted_link& l) { (void)l.get("k"); },
      [](scripted_link& l) { (void)l.get("k"), l.resolved(); },
      [](scripted_link& l) { (void)l.get("k"), l.resolved(), l.connected(); },
      [](scripted_link& l) { l.make_idle(); },
      [](scripted_link& l) { l.make_idle(), (void)l.get("k"); },
      [](scripted_link& l) { l.make_idle(), (void)l.get("k"), l.written(3); },
      [](scripted_link& l) { l.make_idle(), (void)l.get("k"), l.written(); },
      [](scripted_link& l) { (void)l.get("k"), l.resolved(), l.failed(); },
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    for (bool const destroy : {false, true}) {
      scripted_link l;
      ways[way](l);
      std::vector<ticket> more;
      for (int i = 0; i < 100; ++i) more.push_back(l.call(command("GET", i), {.budget = 60s}));
      if (destroy) {
        auto const last = l.leave(command("GET", "in the inbox"), {});
        l.core.reset();
        EXPECT_TRUE(last->discarded);
        for (auto const& t : more) EXPECT_TRUE(t->discarded || t->ends == 1) << way;
      } else {
        l.close(deadline(redoubt::time_point::min()));
        for (auto const& t : more) EXPECT_EQ(t->ends, 1) << way;
        EXPECT_FALSE(l.armed);
        l.expect_quiet();
        auto const late = l.get("late");
        EXPECT_EQ(late->why().code, errc::closed);
        EXPECT_EQ(late->why().phase, redoubt::phase::queue);
      }
    }
  }
}

// --- bounds ---

TEST(core_lifetime, C60_the_queue_is_bounded_by_number_and_bytes) {
  scripted_link l;
  std::vector<ticket> all;
  for (int i = 0; i < 1024; ++i) all.push_back(l.call(command("GET", i), {.budget = 100ms}));
  EXPECT_EQ(l.call(command("GET", 1024), {.budget = 100ms}), nullptr) << "the 1025th";
  EXPECT_EQ(l.gate->calls(), 1024u);
  l.advance(100ms);
  for (auto const& t : all) ASSERT_EQ(t->ends, 1);
  l.expect_quiet();
  l.advance(20ms);  // the pause after the attempt that led nowhere
  auto const big = std::string(6 << 20, 'x');
  EXPECT_NE(l.call(command("SET", "a", big), {.budget = 100ms}), nullptr);
  EXPECT_NE(l.call(command("SET", "b", big), {.budget = 100ms}), nullptr);
  EXPECT_EQ(l.call(command("SET", "c", big), {.budget = 100ms}), nullptr) << "16 MiB";
  EXPECT_NE(l.get("small"), nullptr);
  l.advance(200ms);
  l.expect_quiet();
}

TEST(core_lifetime, C61_the_bounds_are_free_again_after_every_round) {
  redoubt::random_source random(61);
  redoubt::client_options o;
  o.bounds.in_flight = 64;
  scripted_link l(o);
  std::uint64_t key = 1;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint64_t> keys;
    std::vector<ticket> all;
    while (auto const t = l.call(command("SET", "k", round), {.budget = 80ms, .cancel_key = key})) {
      keys.push_back(key++);
      all.push_back(t);
      if (t->ended()) break;  // rejected while backing off
      if (l.core->snapshot().state == link_state::resolving && random.chance(1, 10)) l.resolved();
      if (l.core->snapshot().state == link_state::connecting && random.chance(1, 5)) {
        random.chance(1, 6) ? l.failed() : l.connected();
      }
      if (l.writing()) l.written(1 + random.below(l.unwritten()));
      if (l.connected_now() && random.chance(1, 20)) l.broken();
      if (l.core->snapshot().state == link_state::handshaking && l.connected_now() && random.chance(1, 4)) {
        l.receive("+OK\r\n+PONG\r\n");
      }
    }
    for (auto const k : keys) {
      if (random.chance(1, 4)) l.cancel(k);
    }
    l.advance(std::chrono::milliseconds(random.below(100)));
    if (l.connected_now() && random.chance(1, 2)) l.broken();
    l.advance(300ms);
    for (auto const& t : all) ASSERT_EQ(t->ends, 1) << round;
    l.expect_quiet();
    if (l.connected_now()) l.broken();
    l.advance(1s);
  }
  auto const t = l.get("k");
  l.make_ready();
  l.answer(bulk("v"));
  EXPECT_EQ(t->value.as_string(), "v") << "and the next call is served";
}

}  // namespace
