// SPDX-License-Identifier: BSL-1.0
//
// A call in every phase, and what ends it there: its deadline, its caller, the connection. C29: each ending
// says what happened, where, after how long, and whether Redis may have executed the command.
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::command;
using redoubt::effect;
using redoubt::errc;
using redoubt::link_state;
using redoubt::phase;
using test::scripted_link;
using test::ticket;
using action = scripted_link::action;
using how = scripted_link::how;

constexpr std::uint64_t key = 77;

/// Brings a fresh connection to where its first call stands in a phase.
struct stage {
  phase where;
  effect what;
  std::function<ticket(scripted_link&, how)> arrive;
};

std::vector<stage> stages() {
  auto const set = [] { return command("SET", "k", "v"); };
  return {
      {phase::resolve, effect::none, [set](scripted_link& l, how h) { return l.call(set(), h); }},
      {phase::connect, effect::none,
       [set](scripted_link& l, how h) {
         auto t = l.call(set(), h);
         l.resolved();
         return t;
       }},
      {phase::handshake, effect::none,
       [set](scripted_link& l, how h) {
         auto t = l.call(set(), h);
         l.resolved();
         l.connected();
         l.written();
         return t;
       }},
      {phase::queue, effect::none,
       [set](scripted_link& l, how h) {
         l.make_idle();
         (void)l.call(command("GET", "other"), {.budget = 900ms});  // its write does not end
         return l.call(set(), h);
       }},
      {phase::write, effect::unknown,
       [set](scripted_link& l, how h) {
         l.make_idle();
         return l.call(set(), h);
       }},
      {phase::write, effect::unknown,
       [set](scripted_link& l, how h) {
         l.make_idle();
         auto t = l.call(set(), h);
         l.written(5);
         return t;
       }},
      {phase::read, effect::unknown,
       [set](scripted_link& l, how h) {
         l.make_idle();
         auto t = l.call(set(), h);
         l.written();
         return t;
       }},
      {phase::read, effect::unknown,
       [set](scripted_link& l, how h) {
         l.make_idle();
         auto t = l.call(set(), h);
         l.written();
         l.receive("+O");  // in the middle of the reply
         return t;
       }},
  };
}

void expect_end(scripted_link& l, ticket const& t, errc code, stage const& s, redoubt::duration after) {
  ASSERT_EQ(t->ends, 1) << s.where;
  auto const& f = t->why();
  EXPECT_EQ(f.code, code) << s.where << ": " << f;
  EXPECT_EQ(f.phase, s.where) << f;
  EXPECT_EQ(f.effect, s.what) << s.where << ": " << f;
  EXPECT_EQ(f.elapsed, after) << s.where << ": " << f;
  EXPECT_EQ(f.attempts, s.what == effect::none ? 0 : 1) << s.where;
  EXPECT_EQ(f.command.view(), "SET");
  EXPECT_EQ(f.detail->endpoint, "127.0.0.1:6379");
  EXPECT_FALSE(f.rejected);
  // Effect none is a promise.
  if (s.what == effect::none) {
    EXPECT_EQ(l.sent.find("SET"), std::string::npos) << s.where;
  }
}

TEST(core_phases, C10_C11_deadline_in_every_phase) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 30ms});
    l.advance(29ms);
    EXPECT_FALSE(t->ended()) << s.where << ": early";
    l.advance(1ms);
    expect_end(l, t, errc::deadline_exceeded, s, 30ms);
  }
}

TEST(core_phases, deadlines_of_the_request_end_a_call_like_its_own_budget) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms, .by = redoubt::deadline(l.time + 40ms)});
    l.advance(39ms);
    EXPECT_FALSE(t->ended()) << s.where << ": early";
    l.advance(1ms);
    expect_end(l, t, errc::deadline_exceeded, s, 40ms);
  }
}

TEST(core_phases, C03_cancel_in_every_phase) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms, .cancel_key = key});
    l.advance(20ms);
    l.cancel(key);
    expect_end(l, t, errc::cancelled, s, 20ms);
    l.cancel(key);  // twice is once
    l.advance(1s);
    EXPECT_EQ(t->ends, 1);
  }
}

TEST(core_phases, C03_cancel_overtakes_a_call_that_was_only_just_left) {
  scripted_link l;
  l.make_idle();
  auto const t = l.leave(command("SET", "k", "v"), {.cancel_key = key});
  l.cancel(key);
  ASSERT_EQ(t->ends, 1) << "the connection has not looked into its inbox";
  EXPECT_EQ(t->why().code, errc::cancelled);
  EXPECT_EQ(t->why().effect, effect::none);
  l.wake();
  l.advance(1s);
  EXPECT_EQ(t->ends, 1);
  EXPECT_EQ(l.sent, "") << "Redis never sees it";
  l.expect_quiet();
}

TEST(core_phases, the_end_of_the_connection_in_every_phase) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms});
    l.advance(20ms);
    switch (s.where) {
      case phase::resolve:
        l.failed(errc::resolve_failed);
        expect_end(l, t, errc::resolve_failed, s, 20ms);
        break;
      case phase::connect:
        l.failed(errc::connection_refused);
        expect_end(l, t, errc::connection_refused, s, 20ms);
        break;
      case phase::queue:
        l.broken();
        EXPECT_FALSE(t->ended()) << "it was not sent, so it waits for the next connection";
        EXPECT_EQ(l.log.back().what, action::resolve);
        l.make_ready();
        l.answer("+OK\r\n");
        ASSERT_EQ(t->ends, 1);
        EXPECT_FALSE(t->error);
        break;
      default:
        l.broken();
        expect_end(l, t, errc::connection_lost, s, 20ms);
        break;
    }
  }
}

TEST(core_phases, closing_in_every_phase) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms});
    l.advance(20ms);
    l.close(redoubt::deadline(redoubt::time_point::min()));
    ASSERT_EQ(t->ends, 1) << s.where;
    EXPECT_EQ(t->why().code, errc::closed);
    EXPECT_EQ(t->why().effect, s.what);
    EXPECT_EQ(l.core->snapshot().state, link_state::closed);
    EXPECT_FALSE(l.armed) << "C82: no timer is left";
    l.expect_quiet();
  }
}

TEST(core_phases, C80_destroying_in_every_phase_frees_each_call_once) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms});
    l.core.reset();
    EXPECT_EQ(t->ends, 0) << "the context is gone: nothing can complete";
    EXPECT_TRUE(t->discarded) << s.where;
  }
}

TEST(core_phases, pending_calls_can_be_listed_with_age_and_place) {
  for (auto const& s : stages()) {
    scripted_link l;
    auto const t = s.arrive(l, {.budget = 90ms});
    l.advance(20ms);
    auto const list = l.core->pending();
    ASSERT_FALSE(list.empty());
    auto const& mine = list.back();
    EXPECT_EQ(mine.command.view(), "SET");
    EXPECT_EQ(mine.age, 20ms);
    EXPECT_EQ(mine.phase, s.where);
  }
}

// The same three endings for a hundred calls at once, in every phase: each ends once, and the bounds are free
// again.
TEST(core_phases, C61_counters_return_to_zero_after_a_hundred_calls_in_every_phase) {
  for (auto const& s : stages()) {
    for (int ending = 0; ending < 4; ++ending) {
      scripted_link l;
      std::vector<ticket> all{s.arrive(l, {.budget = 90ms})};
      for (std::uint64_t i = 1; i <= 100; ++i) {
        all.push_back(l.call(command("INCR", i), {.budget = 90ms, .cancel_key = i}));
      }
      switch (ending) {
        case 0: break;
        case 1:
          for (std::uint64_t i = 1; i <= 100; ++i) l.cancel(i);
          break;
        case 2:
          if (l.connected_now()) l.broken();
          break;
        default: l.close(redoubt::deadline(l.time + 50ms)); break;
      }
      l.advance(2s);
      for (auto const& t : all) EXPECT_EQ(t->ends, 1) << s.where << " " << ending;
      l.expect_quiet();
    }
  }
}

TEST(core_phases, a_call_that_arrives_with_its_time_used_up_sends_nothing) {
  for (auto const budget : {0ns, -1ns, -1'000'000'000ns}) {
    scripted_link l;
    auto const t = l.call(command("SET", "k", "v"), {.budget = budget});
    ASSERT_EQ(t->ends, 1) << "C25";
    EXPECT_EQ(t->why().code, errc::deadline_exceeded);
    EXPECT_EQ(t->why().phase, phase::queue);
    EXPECT_EQ(t->why().effect, effect::none);
    EXPECT_TRUE(l.log.empty()) << "not even a connection is made";
    l.expect_quiet();
  }
  scripted_link l;
  auto const t = l.call(command("SET", "k", "v"), {.by = redoubt::deadline(l.time - 1s)});
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ(t->why().code, errc::deadline_exceeded);
}

}  // namespace
