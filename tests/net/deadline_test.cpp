// SPDX-License-Identifier: BSL-1.0
//
// Every call ends by its deadline, and says where it was and what Redis may have done.
#include <future>

#include <boost/asio/post.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// Ended by its deadline: not before it, and not much later.
void expect_deadline(seen_call const& one, duration budget, phase where, effect what) {
  ASSERT_FALSE(*one.got);
  auto const& why = one.got->error();
  EXPECT_EQ(why.code, errc::deadline_exceeded) << why;
  EXPECT_EQ(why.phase, where) << why;
  EXPECT_EQ(why.effect, what) << why;
  EXPECT_GE(one.took(), budget) << why;
  EXPECT_LT(one.took(), budget + slack) << why;
  EXPECT_GE(why.elapsed, budget) << why;
}

TEST(deadline, C10_holds_for_a_call_in_flight) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    if (auto const first = p.read()) p.answer(*first);
    while (auto const command = p.read()) p.later(3s, std::string(ok));
  });
  running_context context;
  client redis(context.io(), towards(server));
  ASSERT_TRUE(call(redis, command("GET", "first"), {.budget = 10s}));  // connecting is not what this is about
  crowd all(3);
  all.start(redis, 0, command("SET", "k", "v"), {.budget = 25ms});
  ASSERT_TRUE(eventually([&] { return all.ended() == 1; }));
  auto options = call_options{};
  options.by = deadline_after(context.executor(), 60ms);
  all.start(redis, 1, command("SET", "k", "v"), options);  // `by` tightens what the client's own limits grant
  all.start(redis, 2, command("SET", "k", "v"));
  ASSERT_TRUE(all.wait());
  expect_deadline(all[0], 25ms, phase::read, effect::unknown);
  // The first call's time was over without a byte from the server: nothing more is sent until one comes.
  EXPECT_GE(all[1].took(), 59ms);
  EXPECT_LT(all[1].took(), 60ms + slack);
  EXPECT_EQ(all[1].got->error().code, errc::deadline_exceeded);
  EXPECT_GE(all[2].took(), 100ms);
  EXPECT_LT(all[2].took(), 150ms + slack);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(deadline, C12_of_each_of_a_hundred_callers_holds_while_the_backlog_is_full) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  running_context context;
  auto options = towards(server);
  options.timeouts.connect = 400ms;  // one attempt outlives every caller
  client redis(context.io(), options);
  crowd all(100);
  auto const budget_of = [](std::size_t i) { return 20ms + 180ms * static_cast<int>(i) / 99; };
  for (std::size_t i = 0; i < 100; ++i) all.start(redis, i, command("GET", "k"), {.budget = budget_of(i)});
  ASSERT_TRUE(all.wait());
  for (std::size_t i = 0; i < 100; ++i) expect_deadline(all[i], budget_of(i), phase::connect, effect::none);
  EXPECT_EQ(redis.snapshot().attempts, 1U) << "one connection attempt serves all callers";
  server.drain_backlog();
  EXPECT_TRUE(first_success(redis, 5s + slack));
}

TEST(deadline, C12_of_each_of_a_hundred_callers_holds_against_a_server_that_says_nothing) {
  std::atomic<bool> healthy = false;
  scripted_server server([&](peer& p) {
    if (p.wait_for(healthy)) scripted_server::plain()(p);
  });
  running_context context;
  auto options = towards(server);
  options.reconnect.stall_limit = 60s;
  client redis(context.io(), options);
  crowd all(100);
  auto const budget_of = [](std::size_t i) { return 20ms + 180ms * static_cast<int>(i) / 99; };
  for (std::size_t i = 0; i < 100; ++i) all.start(redis, i, command("GET", "k"), {.budget = budget_of(i)});
  ASSERT_TRUE(all.wait());
  for (std::size_t i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    ASSERT_FALSE(*all[i].got);
    // A caller whose time is shorter than connecting takes here is still in that phase.
    auto const where = all[i].got->error().phase == phase::connect ? phase::connect : phase::handshake;
    expect_deadline(all[i], budget_of(i), where, effect::none);
  }
  EXPECT_EQ(server.accepted(), 1U);
  healthy = true;  // the first byte makes the parked connection ready
  EXPECT_TRUE(first_success(redis, 5s));
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_EQ(server.count("GET"), 0U);
}

TEST(deadline, C20_of_a_write_that_cannot_proceed) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    if (p.number() == 0) {
      if (auto const first = p.read()) p.answer(*first);
      p.wait_closed();
    } else {
      while (auto const command = p.read()) p.answer(*command);
    }
  });
  running_context context;
  auto options = towards(server);
  options.bounds.queued_bytes = std::size_t{128} << 20;
  client redis(context.io(), options);
  ASSERT_TRUE(call(redis, command("GET", "first"), {.budget = 10s}));
  crowd all(2);
  std::string const large(std::size_t{64} << 20, 'x');
  all.start(redis, 0, command("SET", "large", large), {.budget = 900ms});
  ASSERT_TRUE(eventually([&] { return redis.snapshot().owed == 1; }));
  all.start(redis, 1, command("GET", "x"), {.budget = 100ms});
  ASSERT_TRUE(all.wait());
  expect_deadline(all[0], 900ms, phase::write, effect::unknown);
  expect_deadline(all[1], 100ms, phase::queue, effect::none);
  EXPECT_TRUE(call(redis, command("GET", "y"), {.budget = 10s}));
  EXPECT_EQ(server.accepted(), 2U) << "the half-written connection was not used again";
  EXPECT_EQ(server.count("GET", "x"), 0U);
  EXPECT_EQ(redis.snapshot().queued_bytes, 0U);
}

TEST(deadline, C22_of_connecting_is_forgotten_once_connected) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) p.later(400ms, bulk("late but fine"));
  });
  running_context context;
  auto options = towards(server);
  options.timeouts = {.connect = 200ms, .attempt = 20s, .call = 20s};
  options.reconnect.stall_limit = 30s;
  client redis(context.io(), options);
  auto const got = call(redis, command("GET", "k"));
  ASSERT_TRUE(got) << got.error();
  EXPECT_EQ(got->as_string(), "late but fine");
  auto const again = call(redis, command("GET", "k"), {.budget = 20s});
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(deadline, C24_a_read_is_not_retried) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    (void)p.read();
    p.wait_closed();
  });
  running_context context;
  client redis(context.io(), towards(server));
  auto const start = steady::now();
  auto const got = call(redis, command("GET", "k"));
  EXPECT_LT(steady::now() - start, 150ms + slack);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().attempts, 1);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(server.count("GET"), 1U);
}

TEST(deadline, C25_zero_negative_and_passed_end_the_call_before_anything_is_sent) {
  scripted_server server(scripted_server::plain());
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  std::vector<call_options> options(5);
  options[0].budget = 0ms;
  options[1].budget = -1ms;
  options[2].budget = duration::min();
  options[3].by = deadline(steady::now() - 1s);
  options[4].by = deadline(time_point::min());
  auto fastest = duration::max();
  for (auto const& one : options) {
    auto const start = steady::now();
    auto const got = call(redis, command("GET", "k"), one);
    fastest = std::min<duration>(fastest, steady::now() - start);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
    EXPECT_EQ(got.error().phase, phase::queue);
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_EQ(got.error().group(), failure_class::unavailable);
  }
  EXPECT_LT(fastest, 5ms);
  EXPECT_TRUE(call(redis, command("GET", "after"), {.budget = duration::max()}));
  EXPECT_EQ(server.count("GET"), 1U);
}

}  // namespace
