// SPDX-License-Identifier: BSL-1.0
//
// What observers are told of a connection.
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
using redoubt::errc;
using redoubt::event_kind;
using redoubt::link_state;
using test::scripted_link;

std::string bulk(std::string_view v) {
  return "$" + std::to_string(v.size()) + "\r\n" + std::string(v) + "\r\n";
}

std::vector<event_kind> links(scripted_link const& l) {
  std::vector<event_kind> out;
  for (auto const& e : l.events) {
    if (e.kind == event_kind::connecting || e.kind == event_kind::ready || e.kind == event_kind::lost ||
        e.kind == event_kind::retired) {
      out.push_back(e.kind);
    }
  }
  return out;
}

TEST(core_events, C30_every_attempt_ends_in_one_event_and_so_does_every_connection) {
  redoubt::random_source random(30);
  scripted_link l;
  int kills = 0;
  while (kills < 300) {
    auto const t = l.get("k");
    switch (l.core->snapshot().state) {
      case link_state::resolving: random.chance(1, 10) ? l.failed(errc::resolve_failed) : l.resolved(); break;
      case link_state::connecting: random.chance(1, 4) ? l.failed() : l.connected(); break;
      case link_state::handshaking:
        if (random.chance(1, 8)) {
          l.broken();
        } else if (random.chance(1, 8)) {
          l.receive("-ERR max number of clients reached\r\n");
        } else if (random.chance(1, 8)) {
          l.advance(1100ms);  // silent up to the stall limit
        } else {
          l.receive("+OK\r\n+PONG\r\n");
          if (l.writing()) l.written();
        }
        break;
      case link_state::ready:
        if (l.writing()) l.written();
        if (random.chance(1, 6)) {
          ++kills;
          switch (random.below(4)) {
            case 0: l.broken(); break;
            case 1: l.receive("HTTP/1.1\r\n"); break;
            case 2: l.advance(1100ms); break;
            default:
              if (l.core->snapshot().owed > 0)
                l.receive("-READONLY You can't write against a read only replica.\r\n");
              break;
          }
        } else if (l.core->snapshot().owed > 0) {
          l.receive(bulk("v"));
        }
        break;
      default: break;
    }
    l.advance(std::chrono::milliseconds(random.below(30)));
  }
  auto const seen = links(l);
  auto state = event_kind::lost;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    switch (seen[i]) {
      case event_kind::connecting: ASSERT_EQ(state, event_kind::lost) << i; break;
      case event_kind::ready: ASSERT_EQ(state, event_kind::connecting) << i; break;
      default: ASSERT_NE(state, event_kind::lost) << i << ": told twice"; break;
    }
    state = seen[i] == event_kind::retired ? event_kind::lost : seen[i];
  }
  auto const s = l.core->snapshot();
  auto const told = [&](event_kind k) {
    return static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), k));
  };
  EXPECT_EQ(told(event_kind::connecting), s.attempts);
  EXPECT_EQ(told(event_kind::ready), s.readied);
  EXPECT_EQ(told(event_kind::lost) + told(event_kind::retired), s.failed + s.lost);
  EXPECT_EQ(told(event_kind::retired), s.retired);
  EXPECT_GT(s.retired, 0u);
}

TEST(core_events, a_loss_comes_with_its_cause) {
  scripted_link l;
  l.make_idle();
  (void)l.get("k");
  l.broken();
  ASSERT_FALSE(links(l).empty());
  auto const lost = std::find_if(l.events.begin(), l.events.end(),
                                 [](test::seen_event const& e) { return e.kind == event_kind::lost; });
  ASSERT_NE(lost, l.events.end());
  ASSERT_TRUE(lost->cause);
  EXPECT_EQ(lost->cause->code, errc::connection_lost);
  EXPECT_EQ(lost->cause->detail->endpoint, "127.0.0.1:6379");
}

TEST(core_events, late_replies_and_rejections_are_told) {
  scripted_link l;
  l.make_idle();
  (void)l.call(command("GET", "k"), {.budget = 10ms});
  l.written();
  l.advance(10ms);
  l.receive(bulk("late"));
  auto const told = [&](event_kind k) {
    return std::count_if(l.events.begin(), l.events.end(),
                         [k](test::seen_event const& e) { return e.kind == k; });
  };
  EXPECT_EQ(told(event_kind::late_reply_discarded), 1);
  l.close(deadline(l.time));
  (void)l.get("k");
  EXPECT_EQ(told(event_kind::call_rejected), 1);
}

TEST(core_events, a_retired_connection_is_told_as_such) {
  scripted_link l;
  l.make_idle();
  (void)l.get("k");
  l.written();
  l.receive("-READONLY You can't write against a read only replica.\r\n");
  auto const seen = links(l);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), event_kind::lost), 0);
  auto const retired = std::find_if(l.events.begin(), l.events.end(),
                                    [](test::seen_event const& e) { return e.kind == event_kind::retired; });
  ASSERT_NE(retired, l.events.end());
  EXPECT_EQ(retired->cause->server, redoubt::server_errc::readonly);
}

// Every call that was taken up is told of once when it is sent and once when it ends; who does not ask is
// told of none.
TEST(core_events, C29_C30_a_sink_that_asks_is_told_of_every_call) {
  for (bool const asks : {false, true}) {
    scripted_link l({}, 1, asks);
    l.make_idle();
    auto const before = l.calls_told.size();
    (void)l.get("answered");
    l.written();
    l.advance(4ms);
    l.receive(bulk("v"));
    (void)l.call(command("SET", "k", "v"), {.budget = 10ms});
    l.written();
    l.advance(10ms);
    l.close(deadline(l.time));
    (void)l.get("refused");
    std::vector<test::told_call> const told(l.calls_told.begin() + static_cast<std::ptrdiff_t>(before),
                                            l.calls_told.end());
    if (!asks) {
      EXPECT_TRUE(told.empty());
      continue;
    }
    ASSERT_EQ(told.size(), 4u);
    EXPECT_EQ(told[0].kind, event_kind::call_sent);
    EXPECT_EQ(told[1].kind, event_kind::call_finished);
    EXPECT_EQ(told[1].report.command.view(), "GET");
    EXPECT_EQ(told[1].code, errc::unspecified) << "answered";
    EXPECT_EQ(told[1].report.elapsed, 4ms);
    EXPECT_EQ(told[1].report.times.of(redoubt::phase::read), 4ms);
    EXPECT_EQ(told[2].kind, event_kind::call_sent);
    EXPECT_EQ(told[3].kind, event_kind::call_finished);
    EXPECT_EQ(told[3].report.command.view(), "SET");
    EXPECT_EQ(told[3].code, errc::deadline_exceeded);
    EXPECT_EQ(told[3].report.times.total(), 10ms);
  }
}

}  // namespace
