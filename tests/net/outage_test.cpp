// SPDX-License-Identifier: BSL-1.0
//
// Outages of every kind: each call ends once, nothing grows, nothing is sent later, and the client comes back
// by itself.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <memory>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// A thousand calls with the client's own limits and a thousand with a budget, during an outage. None may be
/// forgotten.
void expect_all_to_complete(client& redis, std::function<void(std::size_t)> const& before = {}) {
  for (bool const with_budget : {false, true}) {
    crowd all(1000);
    for (std::size_t i = 0; i < 1000; ++i) {
      if (before) before(i);
      call_options options;
      if (with_budget) options.budget = 100ms;
      all.start(redis, i, command("GET", std::to_string(i)), options);
    }
    ASSERT_TRUE(all.wait()) << all.ended() << " of 1000 ended";
    std::this_thread::sleep_for(20ms);  // a second completion would come about now
    for (auto const& one : all.calls()) {
      EXPECT_EQ(one.completions, 1);
      EXPECT_LT(one.took(), 150ms + slack);
    }
  }
  auto const now = redis.snapshot();
  EXPECT_EQ(now.in_flight, 0U);
  EXPECT_EQ(now.queued_bytes, 0U);
  EXPECT_EQ(now.started, now.answered + now.expired + now.cancelled + now.rejected + now.failed_calls);
}

TEST(outage, C11_every_call_completes_while_the_server_is_down) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  running_context context;
  client redis(context.io(), towards(server));
  expect_all_to_complete(redis);
  server.listen();
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(outage, C11_every_call_completes_when_the_server_dies_in_the_middle) {
  scripted_server server(scripted_server::plain());
  running_context context;
  client redis(context.io(), towards(server));
  ASSERT_TRUE(call(redis, command("PING")));
  expect_all_to_complete(redis, [&](std::size_t i) {
    if (i % 250 == 125) server.reset_all();
    if (i == 600) server.refuse();
    if (i == 800) server.listen();
  });
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(outage, C11_every_call_completes_when_the_network_is_cut_and_mended) {
  // Nothing is delivered and nothing is closed, in the middle of the traffic and for longer than the stall
  // limit.
  std::atomic<bool> cut = false;
  scripted_server server([&](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) {
      if (cut) return (void)p.wait_closed();
      p.answer(*command);
    }
  });
  running_context context;
  client redis(context.io(), towards(server));
  ASSERT_TRUE(call(redis, command("PING")));
  expect_all_to_complete(redis, [&](std::size_t i) {
    if (i == 500) cut = true;
  });
  cut = false;
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(outage, C11_every_call_completes_when_the_handshake_is_refused) {
  std::atomic<bool> refusing = true;
  scripted_server server([&](peer& p) {
    while (auto const command = p.read()) {
      if (refusing && is(*command, "AUTH"))
        return (void)p.send("-WRONGPASS invalid username-password pair\r\n");
      if (!p.answer(*command)) return;
    }
  });
  running_context context;
  auto options = towards(server);
  options.login.password = "secret";
  client redis(context.io(), options);
  expect_all_to_complete(redis);
  EXPECT_LE(server.accepted(), 4U);
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().server, server_errc::wrongpass) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_EQ(got.error().group(), failure_class::misconfigured);
  EXPECT_EQ(server.count("GET"), 0U);
  refusing = false;
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(outage, C11_every_call_completes_against_a_server_that_accepts_and_says_nothing) {
  std::atomic<bool> silent = true;
  scripted_server server([&](peer& p) {
    if (silent) return (void)p.wait_closed();
    scripted_server::plain()(p);
  });
  running_context context;
  client redis(context.io(), towards(server));
  expect_all_to_complete(redis);
  silent = false;
  // The connection that was made to the silent server is given up after the stall limit; then all is well.
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(outage, C23_a_refused_port_is_reported_at_once_and_tried_once) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  running_context context;
  auto fastest = duration::max();
  for (int i = 0; i < 10; ++i) {
    client redis(context.io(), towards(server));
    auto const start = steady::now();
    auto const got = call(redis, command("GET", "k"), {.budget = 1s});
    fastest = std::min<duration>(fastest, steady::now() - start);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_EQ(got.error().phase, phase::connect);
    EXPECT_EQ(redis.snapshot().attempts, 1U);
  }
  EXPECT_LT(fastest, 20ms);
}

TEST(outage, C32_a_command_that_timed_out_is_not_sent_later) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  running_context context;
  client redis(context.io(), towards(server));
  auto const got = call(redis, command("SET", "k", "v"), {.budget = 80ms});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  std::this_thread::sleep_for(200ms);
  server.drain_backlog();
  ASSERT_TRUE(first_success(redis, 10s));
  EXPECT_EQ(server.count("SET"), 0U);
}

TEST(outage, C85_a_client_made_before_its_server_starts_to_work_with_it) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  running_context context;
  client redis(context.io(), towards(server));
  EXPECT_EQ(redis.snapshot().attempts, 0U) << "construction touches no network";
  for (int i = 0; i < 3; ++i) {
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
  }
  server.listen();
  // Rejected calls say how long to wait; after that the next one must do.
  auto const fourth = call(redis, command("GET", "k"), {.budget = 10s});
  if (!fourth) {
    ASSERT_TRUE(fourth.error().rejected) << fourth.error();
    ASSERT_GT(fourth.error().retry_after, 0ns);
    ASSERT_LE(fourth.error().retry_after, 250ms);
    std::this_thread::sleep_for(fourth.error().retry_after);
    auto const fifth = call(redis, command("GET", "k"), {.budget = 10s});
    EXPECT_TRUE(fifth) << fifth.error();
  }
}

std::size_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

TEST(outage, C60_calls_towards_an_unreachable_server_are_bounded) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  running_context context;
  auto options = towards(server);
  options.timeouts = {.connect = 500ms, .attempt = 500ms, .call = 500ms};
  client redis(context.io(), options);
  std::string const kib(1024, 'x');
  crowd held(1024);
  for (std::size_t i = 0; i < 1024; ++i)
    held.start(redis, i, command("SET", std::to_string(i), kib), {.budget = 10s});
  EXPECT_EQ(redis.snapshot().in_flight, 1024U);
  // The 1025th, and all that follow, are refused by the calling thread itself.
  auto fastest = duration::max();
  for (int i = 0; i < 50; ++i) {
    auto const start = steady::now();
    auto const got = call(redis, command("SET", "k", kib));
    fastest = std::min<duration>(fastest, steady::now() - start);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::queue_full) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_EQ(got.error().group(), failure_class::saturated);
  }
  EXPECT_LT(fastest, 1ms);
  ASSERT_TRUE(held.wait());  // with the attempt to connect
  EXPECT_EQ(redis.snapshot().in_flight, 0U);

  auto const before = resident_kib();
  std::size_t most = 0;
  std::atomic<std::size_t> ended = 0;
  constexpr std::size_t calls = 20'000;
  for (std::size_t i = 0; i < calls; ++i) {
    redis.async_call(command("SET", std::to_string(i), kib), {.budget = 100ms},
                     [&](result<reply>) { ++ended; });
    most = std::max(most, redis.snapshot().in_flight);
    if (i % 10 == 9) std::this_thread::sleep_for(500us);
  }
  ASSERT_TRUE(eventually([&] { return ended == calls; }));
  EXPECT_LE(most, 1024U);
  EXPECT_LE(resident_kib(), before + (sanitized ? 300 : 32) * std::size_t{1024});
}

TEST(outage, C60_queued_bytes_are_bounded_too) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  running_context context;
  auto options = towards(server);
  options.bounds.queued_bytes = std::size_t{1} << 20;
  client redis(context.io(), options);
  auto const too_large = call(redis, command("SET", "k", std::string(std::size_t{1} << 20, 'x')));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, errc::request_too_large) << too_large.error();
  EXPECT_EQ(too_large.error().effect, effect::none);
  EXPECT_EQ(too_large.error().group(), failure_class::caller_error);
  crowd held(10);
  for (std::size_t i = 0; i < 10; ++i)
    held.start(redis, i, command("SET", "k", std::string(100'000, 'x')), {.budget = 300ms});
  auto const full = call(redis, command("SET", "k", std::string(100'000, 'x')));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, errc::queue_full) << full.error();
  EXPECT_LE(redis.snapshot().queued_bytes, std::size_t{1} << 20);
  ASSERT_TRUE(held.wait());
  EXPECT_EQ(redis.snapshot().queued_bytes, 0U);
}

TEST(outage, C61_the_counters_return_to_zero_after_every_kind_of_end) {
  redoubt::testing::loopback_server server;
  running_context context;
  auto options = towards(server);
  options.bounds.in_flight = 64;
  client redis(context.io(), options);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(first_success(redis, 10s)) << "round " << round;
    server.pause();
    crowd all(100);
    std::vector<asio::cancellation_signal> stops(100);
    for (std::size_t i = 0; i < 100; ++i) {
      redis.async_call(command("INCR", "n"), {.budget = 10ms + std::chrono::milliseconds(i % 20)},
                       asio::bind_cancellation_slot(stops[i].slot(), all.handler(i)));
    }
    // A third each: cancelled, expired, failed with the connection (or, where it was faster, one of the
    // others).
    asio::post(context.io(), [&] {
      for (std::size_t i = 0; i < 100; i += 3) stops[i].emit(asio::cancellation_type::terminal);
    });
    if (round % 2 == 0) {
      std::this_thread::sleep_for(5ms);
      server.kill();
      server.restart();
    }
    ASSERT_TRUE(all.wait());
    server.resume();
    auto const now = redis.snapshot();
    EXPECT_EQ(now.in_flight, 0U);
    EXPECT_EQ(now.queued_bytes, 0U);
    EXPECT_EQ(now.waiting, 0U);
    EXPECT_EQ(now.owed, 0U);
    for (auto const& one : all.calls()) EXPECT_EQ(one.completions, 1);
    std::promise<void> quiet;  // the signals may go once nothing on the context can use them
    asio::post(context.io(), [&] { quiet.set_value(); });
    quiet.get_future().wait();
  }
  EXPECT_TRUE(first_success(redis, 10s));
}

}  // namespace
