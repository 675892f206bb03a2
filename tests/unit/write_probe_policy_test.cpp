// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/write_probe.hpp>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "recording_sink.hpp"
#include "stub_client.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;
using test::words;

using probe = write_probe<test::stub_client>;

asio::awaitable<probe_report> report(probe& p, deadline by = {}) {
  auto out = co_await p.report(by);
  co_return out;
}
asio::awaitable<bool> check(probe& p) {
  bool const out = co_await p.check();
  co_return out;
}
asio::awaitable<bool> ping(probe& p) {
  bool const out = co_await p.ping();
  co_return out;
}

test::answer pong() { return {reply(status_line{"PONG"})}; }

/// What a server in one state says to PING, GET and SET, and what the probe must conclude.
struct state {
  char const* name;
  test::answer on_ping, on_get, on_set;
  bool answers;
  capability reads, writes;
  char const* cause;
};

constexpr auto yes = capability::yes;
constexpr auto no = capability::no;
constexpr auto wrong = capability::misconfigured;

std::vector<state> states() {
  auto const readonly = test::says("READONLY You can't write against a read only replica.");
  auto const oom = test::says("OOM command not allowed when used memory > 'maxmemory'.");
  auto const misconf = test::says("MISCONF Redis is configured to save RDB snapshots, but ...");
  auto const loading = test::says("LOADING Redis is loading the dataset in memory");
  auto const busy = test::says("BUSY Redis is busy running a script.");
  auto const master = test::says("MASTERDOWN Link with MASTER is down");
  auto const cluster = test::says("CLUSTERDOWN Hash slot not served");
  auto const replicas = test::says("NOREPLICAS Not enough good replicas to write.");
  auto const noauth = test::says("NOAUTH Authentication required.");
  auto const noperm = test::says("NOPERM this user has no permissions to access one of the keys");
  auto const refused = test::fails(errc::connection_refused);
  auto const lost = test::fails(errc::connection_lost, effect::unknown);
  auto const silent = test::silence();
  return {
      {"healthy", pong(), test::nil(), test::ok(), true, yes, yes, ""},
      {"replica", pong(), test::text("xx"), readonly, true, yes, no, "READONLY"},
      {"memory full", pong(), test::nil(), oom, true, yes, no, "OOM"},
      {"too few replicas", pong(), test::nil(), replicas, true, yes, no, "NOREPLICAS"},
      {"cluster without slots", pong(), cluster, cluster, true, no, no, "CLUSTERDOWN"},
      {"snapshot failing", misconf, test::nil(), misconf, true, yes, no, "MISCONF"},
      {"no master", master, master, readonly, true, no, no, "READONLY"},
      {"loading", loading, loading, loading, true, no, no, "LOADING"},
      {"script running", busy, busy, busy, true, no, no, "BUSY"},
      {"writes paused", pong(), test::nil(), silent, true, yes, no, "deadline_exceeded"},
      {"no password", noauth, noauth, noauth, true, wrong, wrong, "NOAUTH"},
      {"no right", pong(), noperm, noperm, true, wrong, wrong, "NOPERM"},
      {"no right to write", pong(), test::nil(), noperm, true, yes, wrong, "NOPERM"},
      {"no right to read", pong(), noperm, test::ok(), true, wrong, yes, "NOPERM"},
      {"silent", silent, silent, silent, false, no, no, "deadline_exceeded"},
      {"refused", refused, refused, refused, false, no, no, "connection_refused"},
      {"reset", lost, lost, lost, false, no, no, "connection_lost"},
  };
}

struct write_probe_policy : ::testing::Test {
  test::virtual_context world;
  test::stub_client redis{world.executor()};
  test::recording_sink events;
  write_probe_options options{.name = "health", .key = "health:write", .events = &events};

  void say(test::answer on_ping, test::answer on_get, test::answer on_set) {
    redis.on_call = [=](words const& w) {
      return w[0] == "PING" ? on_ping : w[0] == "GET" ? on_get : on_set;
    };
  }
};

TEST_F(write_probe_policy, C_01_C_02_C_04_C127_three_capabilities_in_every_state) {
  for (auto const& s : states()) {
    SCOPED_TRACE(s.name);
    probe p(redis, options);
    say(s.on_ping, s.on_get, s.on_set);
    auto const start = world.now();
    auto const r = world.run(report(p));
    EXPECT_EQ(r.answers, s.answers);
    EXPECT_EQ(r.reads, s.reads);
    EXPECT_EQ(r.writes, s.writes);
    EXPECT_EQ(r.cause_text(), s.cause);
    EXPECT_EQ(r.healthy(), s.reads == yes && s.writes == yes);
    EXPECT_EQ(r.took, world.now() - start);
    EXPECT_EQ(r.at, world.now());
    EXPECT_LE(r.took, p.worst_case());
    EXPECT_EQ(world.run(check(p)), r.healthy());
    EXPECT_EQ(world.run(ping(p)), s.answers)
        << "C-09: liveness of Redis is a PING that is answered, be it with an error";
  }
}

TEST_F(write_probe_policy, A_46_A_47_one_round_trip_with_a_key_of_its_own_and_a_short_life) {
  redis.prefix = "shop:";
  probe p(redis, options);
  say(pong(), test::nil(), test::ok());
  EXPECT_TRUE(world.run(check(p)));
  EXPECT_EQ(redis.seen,
            (std::vector<words>{
                {"PING"}, {"GET", "shop:health:write"}, {"SET", "shop:health:write", "xx", "PX", "60000"}}));
}

TEST_F(write_probe_policy, C_14_the_payload_can_be_as_large_as_what_the_application_writes) {
  options.payload = 100'000;
  probe p(redis, options);
  say(pong(), test::nil(), test::ok());
  (void)world.run(check(p));
  EXPECT_EQ(redis.seen.back()[2].size(), 100'000u);
}

TEST_F(write_probe_policy, A_48_C_03_a_silent_server_is_false_within_the_limit_and_nothing_throws) {
  probe p(redis, options);
  say(test::silence(), test::silence(), test::silence());
  EXPECT_FALSE(world.run(check(p)));
  EXPECT_EQ(world.elapsed(), redis.attempt_timeout);
}

TEST_F(write_probe_policy, C_11_C128_a_hundred_checks_share_one_probe) {
  probe p(redis, options);
  say(test::silence(), test::silence(), test::silence());
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    p.check({}, [&](bool ok) {
      EXPECT_FALSE(ok);
      EXPECT_EQ(world.elapsed(), redis.attempt_timeout);
      ++done;
    });
  }
  EXPECT_EQ(done, 0);
  world.run();
  EXPECT_EQ(done, 100);
  EXPECT_EQ(redis.count("PING"), 1u);
  EXPECT_EQ(p.snapshot().requests, 100u);
  EXPECT_EQ(p.snapshot().probes, 1u);
  (void)world.run(check(p));
  EXPECT_EQ(p.snapshot().probes, 2u) << "the next one asks again";
}

TEST_F(write_probe_policy, C98_each_caller_obeys_its_own_deadline_and_cancellation_only) {
  probe p(redis, options);
  auto slow = test::nil();
  slow.after = 80ms;
  say(pong(), slow, test::ok());
  std::vector<std::pair<probe_report, duration>> got(3);
  auto const keep = [&](std::size_t i) {
    return [&got, this, i](probe_report r) { got[i] = {std::move(r), world.elapsed()}; };
  };
  asio::cancellation_signal signal;
  p.report(world.in(20ms), keep(0));
  p.report({}, asio::bind_cancellation_slot(signal.slot(), keep(1)));
  p.report({}, keep(2));
  world.run_for(40ms);
  signal.emit(asio::cancellation_type::terminal);
  world.run();
  EXPECT_EQ(got[0].second, 20ms);
  EXPECT_EQ(got[0].first.cause.code, errc::deadline_exceeded);
  EXPECT_FALSE(got[0].first.healthy());
  EXPECT_EQ(got[1].second, 40ms);
  EXPECT_EQ(got[1].first.cause.code, errc::cancelled);
  EXPECT_EQ(got[2].second, 80ms);
  EXPECT_TRUE(got[2].first.healthy());
  EXPECT_TRUE(p.last()->healthy()) << "only the probe's own result is kept";
}

TEST_F(write_probe_policy, A_54_the_last_reading_has_its_time_and_needs_no_call) {
  probe p(redis, options);
  EXPECT_FALSE(p.last());
  say(pong(), test::nil(), test::ok());
  (void)world.run(check(p));
  auto const first = p.last()->at;
  EXPECT_EQ(first, world.now());
  world.run_for(10s);
  auto const calls = redis.seen.size();
  EXPECT_EQ(p.last()->at, first);
  EXPECT_EQ(redis.seen.size(), calls);
}

TEST_F(write_probe_policy, C_16_a_change_is_told_once) {
  probe p(redis, options);
  say(pong(), test::nil(), test::ok());
  (void)world.run(check(p));
  (void)world.run(check(p));
  say(pong(), test::nil(), test::says("OOM command not allowed when used memory > 'maxmemory'."));
  (void)world.run(check(p));
  (void)world.run(check(p));
  ASSERT_EQ(events.count(event_kind::probe_changed), 2u);
  EXPECT_EQ(events.all[0].cause.code, errc::unspecified);
  EXPECT_EQ(events.all[1].cause.server, server_errc::oom);
  EXPECT_EQ(events.all[1].source, "health");
  EXPECT_EQ(p.snapshot().healthy, 2u);
  EXPECT_EQ(p.snapshot().failed, 2u);
}

TEST_F(write_probe_policy, a_passed_deadline_asks_nothing) {
  probe p(redis, options);
  auto const r = world.run(report(p, deadline(world.now())));
  EXPECT_FALSE(r.healthy());
  EXPECT_EQ(r.cause.effect, effect::none);
  EXPECT_EQ(redis.seen.size(), 0u);
}

TEST_F(write_probe_policy, C80_it_may_be_destroyed_while_a_check_is_under_way) {
  auto p = std::make_unique<probe>(redis, options);
  std::optional<bool> got;
  p->check({}, [&](bool ok) { got = ok; });
  p.reset();
  world.run();
  EXPECT_EQ(got, std::optional<bool>(false));
  EXPECT_TRUE(events.all.empty()) << "the sink need not outlive the probe by more than that";
}

TEST_F(write_probe_policy, reports_print_as_one_line) {
  probe p(redis, options);
  say(pong(), test::nil(), test::says("OOM command not allowed when used memory > 'maxmemory'."));
  std::ostringstream out;
  out << world.run(report(p));
  EXPECT_EQ(out.str(), "answers, reads, does not write (OOM), 0 ms");
}

TEST_F(write_probe_policy, options_name_the_bad_field) {
  auto const field = [this](write_probe_options o) -> std::string {
    try {
      probe p(redis, std::move(o));
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.key = ""}), "key");
  EXPECT_EQ(field({.key = "k", .ttl = 0s}), "ttl");
  EXPECT_EQ(field({.key = "k", .payload = 0}), "payload");
}

}  // namespace
