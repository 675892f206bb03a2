// SPDX-License-Identifier: BSL-1.0
//
// TLS towards peers that are slow, silent, or something else; and ordinary work over it.
#include <atomic>
#include <thread>

#include <boost/asio/use_future.hpp>

#include "scripted_server.hpp"
#include "tls_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

client_options towards(std::uint16_t port) {
  enable_tls();
  return {.address = {.port = port},
          .tls = {.enabled = true},
          .timeouts = {.connect = 20s, .attempt = 20s, .call = 20s},
          .reconnect = {.stall_limit = 30s}};
}

void expect_expired_in_tls(client_options const& options, duration budget) {
  running_context context;
  client redis(context.io(), options);
  auto const begin = steady::now();
  auto const got = call(redis, command("GET", "k"), {.budget = budget});
  auto const took = steady::now() - begin;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().phase, phase::tls) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_GE(took, budget);
  EXPECT_LE(took, budget + slack);
}

TEST(tls_peer, C19_that_accepts_and_never_speaks_costs_the_budget_and_no_more) {
  scripted_server silent([](peer& p) { p.wait_closed(); });
  expect_expired_in_tls(towards(silent.port()), 150ms);
  EXPECT_EQ(silent.accepted(), 1U);
}

TEST(tls_peer, C19_the_time_that_connecting_took_is_not_given_again) {
  scripted_server late([](peer& p) { p.wait_closed(); }, {.backlog_full = true});
  std::thread opener([&] {
    std::this_thread::sleep_for(60ms);
    late.drain_backlog();
  });
  // The system sends the lost SYN again after a second.
  expect_expired_in_tls(towards(late.port()), 1500ms);
  opener.join();
}

TEST(tls_peer, that_stays_silent_is_parked_until_the_stall_limit) {
  scripted_server silent([](peer& p) { p.wait_closed(); });
  running_context context;
  auto options = towards(silent.port());
  options.timeouts = {.connect = 50ms, .attempt = 50ms, .call = 100ms};
  options.reconnect.stall_limit = 300ms;
  client redis(context.io(), options);
  auto const end = steady::now() + 2s;
  while (steady::now() < end) {
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().effect, effect::none);
  }
  EXPECT_LE(silent.accepted(), 9U) << "one connection per stall limit";
  EXPECT_EQ(redis.snapshot().readied, 0U);
}

TEST(tls_peer, C19_that_speaks_plain_redis_is_told_nothing) {
  real_redis plain;
  auto options = towards(static_cast<std::uint16_t>(plain.port()));
  options.login.password = "S3cr3t-pw";
  running_context context;
  client redis(context.io(), options);
  // Redis waits for the end of what it takes for a line, or answers with an error: the hello is random.
  auto const got = call(redis, command("GET", "k"), {.budget = 300ms});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().phase, phase::tls) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_TRUE(got.error().code == errc::deadline_exceeded || got.error().code == errc::tls_failed)
      << got.error();
  raw_redis admin(plain.port());
  EXPECT_EQ(number_in(admin.call({"INFO", "commandstats"}), "cmdstat_auth:calls="), 0U);
}

TEST(tls_peer, that_answers_in_clear_is_named_as_such) {
  scripted_server plain([](peer& p) {
    p.send("-ERR what is this?\r\n");
    p.wait_closed();
  });
  auto const why = refused_by_tls(towards(plain.port()));
  EXPECT_EQ(why.code, errc::tls_failed) << why;
  EXPECT_EQ(why.phase, phase::tls) << why;
  EXPECT_EQ(why.effect, effect::none) << why;
  EXPECT_EQ(why.group(), failure_class::unavailable) << why;
  EXPECT_NE(why.message().find("does not speak TLS"), std::string::npos) << why;
}

TEST(tls_peer, that_hangs_up_in_the_handshake) {
  for (bool const hard : {false, true}) {
    scripted_server gone([hard](peer& p) { hard ? p.reset() : p.close(); });
    auto const why = refused_by_tls(towards(gone.port()));
    EXPECT_EQ(why.code, errc::tls_failed) << why;
    EXPECT_EQ(why.phase, phase::tls) << why;
    EXPECT_EQ(why.effect, effect::none) << why;
  }
}

TEST(tls_peer, plain_client_at_a_tls_port_does_not_hang) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}));
  running_context context;
  client redis(context.io(), {.address = {.port = server.tls_port()}});
  auto const got = call(redis, command("GET", "k"), {.budget = 2s});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().effect, effect::none) << got.error();
  EXPECT_EQ(got.error().phase, phase::handshake) << got.error();
}

TEST(tls_peer, values_of_every_size_come_back) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}));
  running_context context(2);
  client redis(context.io(), over_tls(server.tls_port(), ca));
  for (std::size_t const size :
       std::vector<std::size_t>{0, 1, 100, 16'383, 16'384, 16'385, 70'000, 3'000'000}) {
    std::string value(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) value[i] = static_cast<char>('a' + i % 26);
    auto const set = call(redis, command("SET", "k", value));
    ASSERT_TRUE(set) << set.error();
    auto const got = call(redis, command("GET", "k"));
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(got->as_string(), value) << size;
  }
}

TEST(tls_peer, many_calls_at_a_time_get_their_own_replies_while_connections_end) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}));
  running_context context(4);
  auto options = over_tls(server.tls_port(), ca);
  options.connections = 2;
  client redis(context.io(), options);
  std::atomic<int> right = 0;
  std::atomic<int> lost = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        auto const text = std::to_string(t * 1000 + i) + std::string(static_cast<std::size_t>(i) * 7, '.');
        auto const got = call(redis, command("ECHO", text));
        if (!got) {
          ++lost;
        } else {
          EXPECT_EQ(got->as_string(), text);
          ++right;
        }
      }
      over = true;
    });
  }
  raw_redis admin(server.server().port());
  // By replies, not by time: a slow machine reconnects slowly.
  for (int next = 50; !over; next = right + 50) {
    while (!over && right < next) std::this_thread::sleep_for(1ms);
    admin.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  }
  for (auto& one : callers) one.join();
  EXPECT_EQ(right + lost, 1600);
  EXPECT_GT(right, 0);
  EXPECT_TRUE(eventually([&] { return call(redis, command("PING")).has_value(); }));
  auto const s = redis.snapshot();
  EXPECT_EQ(s.started, s.answered + s.expired + s.cancelled + s.rejected + s.failed_calls);
}

TEST(tls_peer, C80_closing_and_destroying_in_every_phase_ends_every_call) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}));
  for (auto const wait : {0us, 200us, 500us, 1000us, 2000us, 5000us, 10'000us}) {
    running_context context;
    std::vector<std::future<result<reply>>> pending;
    {
      client redis(context.io(), over_tls(server.tls_port(), ca));
      for (int i = 0; i < 20; ++i) {
        pending.push_back(redis.async_call(command("ECHO", std::string(5000, 'x')), {}, asio::use_future));
      }
      std::this_thread::sleep_for(wait);
    }
    for (auto& one : pending) {
      auto const got = one.get();
      EXPECT_TRUE(got || got.error().code == errc::closed) << got.error();
    }
  }
}

TEST(tls_peer, a_context_that_is_destroyed_in_the_middle_leaks_nothing) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}));
  for (int turns = 0; turns < 12; ++turns) {
    asio::io_context io;
    client redis(io, over_tls(server.tls_port(), ca));
    redis.async_call(command("ECHO", "x"), {}, [](result<reply> const&) {});
    for (int i = 0; i < turns; ++i) io.run_one_for(50ms);
  }
}

}  // namespace
