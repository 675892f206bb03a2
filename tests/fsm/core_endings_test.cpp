// SPDX-License-Identifier: BSL-1.0
//
// C29: every phase a call can end in, times everything that can end it there. Each of the 21 failures says
// what happened, where, after how long, at which endpoint, in which attempt, and whether Redis may have
// executed the command.
#include <ostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using namespace redoubt;
using test::scripted_link;
using test::ticket;

enum class ending { deadline, cancel, loss };

std::string name_of(ending how) {
  switch (how) {
    case ending::deadline: return "deadline";
    case ending::cancel: return "cancel";
    case ending::loss: return "loss";
  }
  return {};
}

constexpr std::uint64_t key = 77;

class core_endings : public ::testing::TestWithParam<std::tuple<phase, ending>> {
 protected:
  static client_options options() {
    client_options out;
    out.tls.enabled = true;
    out.reconnect.backoff = {.base = 10ms, .cap = 10ms};
    return out;
  }

  /// A connection that has just ended before any answer: its end once more counts as a failed attempt.
  void lose_once() {
    auto const first = l.get("first");
    secure();
    l.written();
    l.receive("+OK\r\n+PONG\r\n");
    l.broken();
    ASSERT_TRUE(first->ended());
  }

  void secure() {
    l.resolved();
    l.connected();
    l.secured();
  }

  void open() {
    auto const first = l.get("first");
    secure();
    l.written();
    l.receive("+OK\r\n+PONG\r\n");
    l.answer("$-1\r\n");
    ASSERT_TRUE(first->ended());
  }

  /// Brings a call to where it stands in `where`.
  ticket arrive(phase where, scripted_link::how how) {
    command const set("SET", "k", "v");
    switch (where) {
      case phase::resolve: return l.call(set, how);
      case phase::connect: {
        auto t = l.call(set, how);
        l.resolved();
        return t;
      }
      case phase::tls: {
        auto t = l.call(set, how);
        l.resolved();
        l.connected();
        return t;
      }
      case phase::handshake: {
        auto t = l.call(set, how);
        secure();
        l.written();
        return t;
      }
      case phase::queue: {
        lose_once();
        (void)l.call(command("GET", "other"), {.budget = 900ms});
        secure();
        l.written();
        l.receive("+OK\r\n+PONG\r\n");  // and the other's write does not end
        return l.call(set, how);
      }
      case phase::write: {
        open();
        auto t = l.call(set, how);
        l.written(5);
        return t;
      }
      case phase::read: {
        open();
        auto t = l.call(set, how);
        l.written();
        l.receive("+O");
        return t;
      }
      case phase::done: break;
    }
    return nullptr;
  }

  /// Ends the connection, or the attempt to make one; what a call is told then.
  errc lose(phase where) {
    switch (where) {
      case phase::resolve: l.failed(errc::resolve_failed); return errc::resolve_failed;
      case phase::connect: l.failed(errc::connection_refused); return errc::connection_refused;
      case phase::tls: l.failed(errc::tls_failed); return errc::tls_failed;
      default: l.broken(); return errc::connection_lost;
    }
  }

  scripted_link l{options()};
};

TEST_P(core_endings, C29_say_what_where_when_and_whether_it_may_have_run) {
  auto const [where, how] = GetParam();
  auto const t = arrive(where, {.budget = 90ms, .cancel_key = key});
  ASSERT_NE(t, nullptr);
  ASSERT_FALSE(t->ended());
  duration after = 20ms;
  errc code{};
  switch (how) {
    case ending::deadline:
      after = 90ms;
      code = errc::deadline_exceeded;
      l.advance(89ms);
      EXPECT_FALSE(t->ended()) << "early";
      l.advance(1ms);
      break;
    case ending::cancel:
      code = errc::cancelled;
      l.advance(after);
      l.cancel(key);
      break;
    case ending::loss:
      l.advance(after);
      code = lose(where);
      break;
  }
  ASSERT_EQ(t->ends, 1);
  bool const begun = where == phase::write || where == phase::read;
  auto const& why = t->why();
  EXPECT_EQ(why.code, code) << why;
  EXPECT_EQ(why.phase, where) << why;
  EXPECT_EQ(why.effect, begun ? effect::unknown : effect::none) << why;
  EXPECT_EQ(why.elapsed, after) << why;
  EXPECT_EQ(why.attempts, begun ? 1 : 0) << why;
  EXPECT_EQ(why.times.of(where), after) << why;
  EXPECT_EQ(why.times.total(), why.elapsed) << why;
  EXPECT_EQ(why.command.view(), "SET");
  EXPECT_EQ(why.detail->endpoint, "127.0.0.1:6379");
  EXPECT_FALSE(why.rejected) << why;
  l.advance(1s);
  EXPECT_EQ(t->ends, 1) << "once";
  if (!begun) {
    EXPECT_EQ(l.sent.find("SET"), std::string::npos) << "effect none is a promise";
  }
}

INSTANTIATE_TEST_SUITE_P(
    every_phase, core_endings,
    ::testing::Combine(::testing::Values(phase::queue, phase::resolve, phase::connect, phase::tls,
                                         phase::handshake, phase::write, phase::read),
                       ::testing::Values(ending::deadline, ending::cancel, ending::loss)),
    [](auto const& one) {
      return std::string(to_string(std::get<0>(one.param))) + "_" + name_of(std::get<1>(one.param));
    });

// One call that waits for every phase in turn: each takes a time of its own, and the failure says which.
TEST(core_endings, C29_the_time_divides_into_the_phases_that_it_went_into) {
  client_options options;
  options.tls.enabled = true;
  scripted_link l{options};
  auto const t = l.call(command("SET", "k", "v"), {.budget = 900ms});
  l.advance(3ms);
  l.resolved();
  l.advance(5ms);
  l.connected();
  l.advance(7ms);
  l.secured();
  l.written();
  l.advance(11ms);
  l.receive("+OK\r\n+PONG\r\n");
  l.advance(13ms);
  l.written();
  l.advance(17ms);
  l.answer("-ERR no\r\n");
  ASSERT_EQ(t->ends, 1);
  auto const& times = t->why().times;
  EXPECT_EQ(times.of(phase::queue), 0ms);
  EXPECT_EQ(times.of(phase::resolve), 3ms);
  EXPECT_EQ(times.of(phase::connect), 5ms);
  EXPECT_EQ(times.of(phase::tls), 7ms);
  EXPECT_EQ(times.of(phase::handshake), 11ms);
  EXPECT_EQ(times.of(phase::write), 13ms);
  EXPECT_EQ(times.of(phase::read), 17ms);
  EXPECT_EQ(times.total(), t->why().elapsed);
  EXPECT_NE(t->why().message().find("; resolve 3 ms, connect 5 ms, tls 7 ms, handshake 11 ms, write 13 ms, "
                                    "read 17 ms"),
            std::string::npos)
      << t->why();
}

// A connection that is lost while a call waits is made again for it: both attempts count.
TEST(core_endings, C29_the_time_of_two_attempts_to_connect_counts) {
  scripted_link l;
  l.make_idle();
  l.advance(50ms);
  l.broken();
  auto const t = l.call(command("GET", "k"), {.budget = 900ms});
  l.advance(2ms);
  l.resolved();
  l.advance(4ms);
  l.connected();
  l.written();
  l.receive("+OK\r\n+PONG\r\n");
  l.broken();  // a connection that had answered, so the next one is made at once
  ASSERT_EQ(t->ends, 1) << "it was written";
  EXPECT_EQ(t->why().times.of(phase::resolve), 2ms);
  EXPECT_EQ(t->why().times.of(phase::connect), 4ms);
  EXPECT_EQ(t->why().times.total(), t->why().elapsed);
}

// The stall limit is one second: a silent server is given up when the longest budget has been used up, and it
// is the budget that its caller is told of.
TEST(core_endings, C10_a_budget_beyond_the_stall_limit_ends_as_a_deadline) {
  for (auto const budget :
       {redoubt::duration(1s), redoubt::duration(1500ms), redoubt::duration(3s + 300us)}) {
    scripted_link l;
    l.make_idle();
    auto const t = l.call(command("GET", "k"), {.budget = budget});
    l.written();
    l.advance(budget + 2ms);
    ASSERT_EQ(t->ends, 1);
    EXPECT_EQ(t->why().code, errc::deadline_exceeded);
    EXPECT_EQ(t->why().effect, effect::unknown);
    EXPECT_GE(t->why().elapsed, budget);
    EXPECT_LE(t->why().elapsed, budget + 1ms);
    EXPECT_EQ(l.core->snapshot().retired + l.core->snapshot().lost, 1u) << "then the connection is given up";
  }
}

}  // namespace
