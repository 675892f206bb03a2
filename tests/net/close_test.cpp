// SPDX-License-Identifier: BSL-1.0
//
// Closing with time to drain: in every state it ends in time, what can still be answered is, the rest is told
// the truth.
#include <future>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

constexpr auto drain = 300ms;

void expect_closed_at_once(client& redis) {
  auto fastest = duration::max();
  for (int i = 0; i < 10; ++i) {
    auto const start = steady::now();
    auto const got = call(redis, command("GET", "k"));
    fastest = std::min<duration>(fastest, steady::now() - start);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::closed) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_TRUE(got.error().rejected);
  }
  EXPECT_LT(fastest, 20ms);
}

/// Closes with `drain`; the time it took.
duration drained(client& redis) {
  auto const start = steady::now();
  redis.async_close(drain, asio::use_future).get();
  return steady::now() - start;
}

TEST(draining, C83_waits_for_the_calls_that_are_answered_in_time) {
  scripted_server* self = nullptr;
  scripted_server server([&](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) p.later(100ms, self->answer_of(*command));
  });
  self = &server;
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  crowd all(10);
  for (std::size_t i = 0; i < 10; ++i) all.start(redis, i, command("GET", std::to_string(i)));
  auto const start = steady::now();
  auto closing = redis.async_close(20s, asio::use_future);
  expect_closed_at_once(redis);
  closing.get();
  EXPECT_LT(steady::now() - start, 100ms + slack) << "no longer than needed";
  ASSERT_TRUE(all.wait(1s)) << "close completed before its calls";
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(*all[i].got) << all[i].got->error();
    EXPECT_EQ((*all[i].got)->as_string(), "value of " + std::to_string(i));
  }
  EXPECT_EQ(redis.snapshot().state, link_state::closed);
}

TEST(draining, C83_ends_in_time_against_a_silent_server) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  crowd all(10);
  for (std::size_t i = 0; i < 10; ++i) all.start(redis, i, command("INCR", "n"));
  ASSERT_TRUE(eventually([&] { return redis.snapshot().owed == 10; }));
  auto const took = drained(redis);
  EXPECT_GE(took, drain);
  EXPECT_LT(took, drain + slack);
  ASSERT_TRUE(all.wait(1s));
  for (auto const& one : all.calls()) {
    ASSERT_FALSE(*one.got);
    EXPECT_EQ(one.got->error().code, errc::closed) << one.got->error();
    EXPECT_EQ(one.got->error().effect, effect::unknown);
    EXPECT_EQ(one.got->error().phase, phase::read);
  }
  expect_closed_at_once(redis);
}

TEST(draining, C83_ends_in_time_with_a_full_queue) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  crowd all(1024);
  for (std::size_t i = 0; i < 1024; ++i) all.start(redis, i, command("INCR", "n"));
  EXPECT_EQ(call(redis, command("INCR", "n")).error().code, errc::queue_full);
  auto const took = drained(redis);
  EXPECT_GE(took, drain);
  EXPECT_LT(took, drain + slack);
  ASSERT_TRUE(all.wait(1s));
  for (auto const& one : all.calls()) {
    ASSERT_FALSE(*one.got);
    EXPECT_EQ(one.got->error().code, errc::closed) << one.got->error();
    EXPECT_EQ(one.got->error().effect, effect::none);
  }
  EXPECT_EQ(redis.snapshot().in_flight, 0U);
}

TEST(draining, C83_ends_when_the_connection_fails_meanwhile) {
  scripted_server server([](peer& p) {
    p.wait(100ms);
    p.reset();
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  crowd all(10);
  for (std::size_t i = 0; i < 10; ++i) all.start(redis, i, command("INCR", "n"));
  EXPECT_LT(drained(redis), drain + slack);
  ASSERT_TRUE(all.wait(1s));
  for (auto const& one : all.calls()) {
    ASSERT_FALSE(*one.got);
    EXPECT_EQ(one.got->error().effect, effect::none) << one.got->error();
  }
}

TEST(draining, C83_ends_at_once_where_there_is_nothing_to_drain) {
  scripted_server refusing(scripted_server::plain(), {.refusing = true});
  scripted_server healthy(scripted_server::plain());
  running_context context;
  {
    client redis(context.io(), patient(towards(healthy)));  // idle, never used
    EXPECT_LT(drained(redis), drain);
    expect_closed_at_once(redis);
  }
  {
    client redis(context.io(), patient(towards(healthy)));  // ready
    ASSERT_TRUE(call(redis, command("PING")));
    EXPECT_LT(drained(redis), drain);
    EXPECT_TRUE(eventually([&] { return healthy.open() == 0; }));
  }
  {
    client redis(context.io(), patient(towards(refusing)));  // backing off
    EXPECT_FALSE(call(redis, command("PING")));
    EXPECT_LT(drained(redis), drain);
    expect_closed_at_once(redis);
  }
}

TEST(draining, C83_twice_and_again_afterwards) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  crowd all(1);
  all.start(redis, 0, command("INCR", "n"));
  ASSERT_TRUE(eventually([&] { return redis.snapshot().owed == 1; }));
  auto const start = steady::now();
  auto first = redis.async_close(20s, asio::use_future);
  auto second = redis.async_close(drain, asio::use_future);  // the earlier end counts, for both
  auto third = redis.async_close(60s, asio::use_future);
  first.get();
  second.get();
  third.get();
  EXPECT_GE(steady::now() - start, drain);
  EXPECT_LT(steady::now() - start, drain + slack);
  ASSERT_TRUE(all.wait(1s));
  redis.async_close(1h, asio::use_future).get();
  expect_closed_at_once(redis);
}

TEST(draining, C83_says_what_it_waits_for) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    (void)p.read();
    p.wait_closed();
  });
  running_context context;
  auto options = patient(towards(server));
  options.bounds.queued_bytes = std::size_t{64} << 20;
  client redis(context.io(), options);
  EXPECT_TRUE(redis.async_pending(asio::use_future).get().empty());
  crowd all(3);
  all.start(redis, 0, command("get", "k"));
  ASSERT_TRUE(eventually([&] { return server.count("get") == 1; }));
  all.start(redis, 1, command("SET", "k", std::string(std::size_t{16} << 20, 'x')));
  all.start(redis, 2, command("INCR", "k"));
  ASSERT_TRUE(eventually([&] { return redis.snapshot().owed == 2 && redis.snapshot().waiting == 1; }));
  auto closing = redis.async_close(drain, asio::use_future);
  std::this_thread::sleep_for(20ms);
  auto const list = redis.async_pending(asio::use_future).get();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].command.view(), "GET");
  EXPECT_EQ(list[0].phase, phase::read);
  EXPECT_EQ(list[1].command.view(), "SET");
  EXPECT_EQ(list[1].phase, phase::write);
  EXPECT_EQ(list[2].command.view(), "INCR");
  EXPECT_EQ(list[2].phase, phase::queue);
  for (auto const& one : list) EXPECT_GE(one.age, 20ms);
  closing.get();
  ASSERT_TRUE(all.wait(1s));
  EXPECT_TRUE(redis.async_pending(asio::use_future).get().empty());
}

TEST(draining, C83_lets_a_script_end_that_the_server_does_not_know) {
  scripted_server server([](peer& p) {
    while (auto const command = p.read()) {
      if (is(*command, "EVALSHA")) {
        if (!p.wait(50ms) || !p.send("-NOSCRIPT No matching script. Please use EVAL.\r\n")) return;
      } else if (!(is(*command, "EVAL") ? p.send(":1\r\n") : p.answer(*command))) {
        return;
      }
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  script const body("return 1");
  auto evaluating = redis.async_eval(body, keys(), args(), {}, asio::use_future);
  ASSERT_TRUE(eventually([&] { return server.count("EVALSHA") == 1; }));
  redis.async_close(20s, asio::use_future).get();
  ASSERT_EQ(evaluating.wait_for(0s), std::future_status::ready) << "close completed before its call";
  auto const got = evaluating.get();
  ASSERT_TRUE(got) << got.error();
  EXPECT_EQ(got->as_integer(), 1);
}

TEST(draining, C83_completes_on_a_context_that_has_nothing_else_to_do) {
  scripted_server server(scripted_server::plain());
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  asio::io_context other;
  bool pending_done = false;
  bool close_done = false;
  redis.async_pending(asio::bind_executor(other, [&](std::vector<pending_info>) { pending_done = true; }));
  other.run();
  EXPECT_TRUE(pending_done) << "run() returned although a completion was owed to it";
  other.restart();
  redis.async_close(1s, asio::bind_executor(other, [&] { close_done = true; }));
  other.run();
  EXPECT_TRUE(close_done) << "run() returned although a completion was owed to it";
}

}  // namespace
