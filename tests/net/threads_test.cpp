// SPDX-License-Identifier: BSL-1.0
//
// Any thread may call; several connections; unix sockets and IPv6.
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include <boost/asio/thread_pool.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// `threads` threads, each asks for keys of its own, several at a time, `calls` times.
void hammer(client& redis, int threads, int calls) {
  auto const before = redis.snapshot().started;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      constexpr int at_a_time = 50;
      for (int done = 0; done < calls; done += at_a_time) {
        std::vector<std::future<result<reply>>> some;
        for (int i = 0; i < at_a_time; ++i) {
          some.push_back(redis.async_call(command("GET", std::to_string(t) + ":" + std::to_string(done + i)),
                                          {}, asio::use_future));
        }
        for (int i = 0; i < at_a_time; ++i) {
          auto const got = some[static_cast<std::size_t>(i)].get();
          if (!got || got->as_string() != "value of " + std::to_string(t) + ":" + std::to_string(done + i))
            ++wrong;
        }
        (void)redis.snapshot();
      }
    });
  }
  for (auto& one : all) one.join();
  EXPECT_EQ(wrong, 0);
  auto const now = redis.snapshot();
  EXPECT_EQ(now.in_flight, 0U);
  EXPECT_EQ(now.started - before, static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(calls));
  EXPECT_EQ(now.answered, now.started);
}

TEST(threads, C78_eight_of_them_call_one_client_on_a_context_with_one_thread) {
  scripted_server server(scripted_server::plain());
  running_context context(1);
  client redis(context.io(), patient(towards(server)));
  hammer(redis, 8, 5000);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(threads, C78_eight_of_them_call_one_client_on_a_context_with_four_threads) {
  scripted_server server(scripted_server::plain());
  running_context context(4);
  client redis(context.io(), patient(towards(server)));
  hammer(redis, 8, 5000);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(threads, C78_a_thread_pool_works_as_well) {
  scripted_server server(scripted_server::plain());
  asio::thread_pool pool(3);
  {
    client redis(pool, patient(towards(server)));
    hammer(redis, 4, 1000);
  }
  pool.join();  // returns: the client has let it go
}

TEST(threads, closing_while_others_call_completes_everything_once) {
  scripted_server server(scripted_server::plain());
  running_context context(3);
  for (int round = 0; round < 30; ++round) {
    client redis(context.io(), patient(towards(server)));
    std::atomic<int> started = 0;
    std::atomic<int> ended = 0;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t) {
      callers.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          ++started;
          redis.async_call(command("GET", "k"), {}, [&](result<reply> got) {
            if (got ? got->as_string() != "value of k"
                    : got.error().code != errc::closed && got.error().code != errc::queue_full) {
              ++wrong;
            }
            ++ended;
          });
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    redis.async_close(round % 2 == 0 ? duration(0) : duration(5s), asio::use_future).get();
    for (auto& one : callers) one.join();
    ASSERT_TRUE(eventually([&] { return ended == started; }));
    EXPECT_EQ(wrong, 0);
  }
}

TEST(several_connections, share_the_calls_and_fail_one_by_one) {
  scripted_server* self = nullptr;
  std::atomic<bool> third_is_bad = false;
  scripted_server server([&](peer& p) {
    while (auto const command = p.read()) {
      if (third_is_bad && p.number() == 2) return p.reset();
      if (!p.answer(*command)) return;
    }
  });
  self = &server;
  running_context context(2);
  auto options = patient(towards(server));
  options.connections = 4;
  client redis(context.io(), options);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(call(redis, command("PING")));
  EXPECT_EQ(server.accepted(), 4U);
  hammer(redis, 4, 500);
  EXPECT_EQ(server.accepted(), 4U);
  third_is_bad = true;
  crowd all(400);
  for (std::size_t i = 0; i < 400; ++i) all.start(redis, i, command("GET", std::to_string(i)));
  ASSERT_TRUE(all.wait());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    if (*all[i].got) {
      EXPECT_EQ((*all[i].got)->as_string(), "value of " + std::to_string(i));
    } else {
      EXPECT_EQ(all[i].got->error().code, errc::connection_lost);
      ++failed;
    }
  }
  EXPECT_GT(failed, 0U);
  EXPECT_LE(failed, 100U) << "only the calls of one connection";
  EXPECT_EQ(redis.snapshot().in_flight, 0U);
  auto const pending = redis.async_pending(asio::use_future).get();
  EXPECT_TRUE(pending.empty());
  redis.async_close(1s, asio::use_future).get();
  EXPECT_TRUE(eventually([&] { return self->open() == 0; }));
}

TEST(several_connections, share_one_bound) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  running_context context;
  auto options = patient(towards(server));
  options.connections = 4;
  options.bounds.in_flight = 10;
  client redis(context.io(), options);
  crowd all(30);
  for (std::size_t i = 0; i < 30; ++i) all.start(redis, i, command("GET", "k"), {.budget = 200ms});
  ASSERT_TRUE(all.wait());
  std::size_t full = 0;
  for (auto const& one : all.calls()) full += one.got->error().code == errc::queue_full ? 1 : 0;
  EXPECT_EQ(full, 20U);
}

TEST(sockets, of_the_unix_kind_work) {
  scripted_server server(scripted_server::plain(), {.where = scripted_options::family::unix_socket});
  running_context context;
  {
    client redis(context.io(), patient(towards(server)));
    auto const got = call(redis, command("GET", "k"));
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(got->as_string(), "value of k");
    auto const failed = call(redis, command("NOSUCH"));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().detail->endpoint, server.path());
  }
  {
    client redis(context.io(), {.url = "unix://" + server.path() + "?db=3"});
    EXPECT_TRUE(call(redis, command("GET", "k"), {.budget = 20s}));
    EXPECT_EQ(server.count("SELECT", "3"), 1U);
  }
  server.refuse();
  client redis(context.io(), patient(towards(server)));
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
}

TEST(sockets, of_the_unix_kind_with_a_full_backlog_do_not_hang) {
  scripted_server server(scripted_server::plain(),
                         {.where = scripted_options::family::unix_socket, .backlog_full = true});
  running_context context;
  client redis(context.io(), towards(server));
  for (int i = 0; i < 20; ++i) {
    auto const start = steady::now();
    auto const got = call(redis, command("GET", "k"));
    EXPECT_LT(steady::now() - start, 150ms + slack);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().effect, effect::none) << got.error();
    EXPECT_EQ(got.error().fail_mode_applies(), true) << got.error();
  }
  server.drain_backlog();
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(sockets, of_ipv6_work) {
  scripted_server server(scripted_server::plain(), {.where = scripted_options::family::ipv6});
  running_context context;
  auto options = patient(towards(server));
  options.address.host = "::1";
  client redis(context.io(), options);
  auto const got = call(redis, command("GET", "k"));
  ASSERT_TRUE(got) << got.error();
  client by_url(context.io(), {.url = "redis://[::1]:" + std::to_string(server.port())});
  EXPECT_TRUE(call(by_url, command("GET", "k"), {.budget = 20s}));
  auto const failed = call(by_url, command("NOSUCH"), {.budget = 20s});
  EXPECT_EQ(failed.error().detail->endpoint, "[::1]:" + std::to_string(server.port()));
}

TEST(sockets, C15_towards_a_name_that_nobody_knows_hold_up_neither_a_call_nor_the_end) {
  // The system's look-up may take seconds to say so, or say so at once; both are waited for by nobody.
  running_context context;
  auto const start = steady::now();
  {
    crowd all(20);
    client redis(context.io(), {.address = {.host = "no-such-host.invalid"}});
    for (std::size_t i = 0; i < 20; ++i) all.start(redis, i, command("GET", "k"), {.budget = 80ms});
    ASSERT_TRUE(all.wait());
    for (auto const& one : all.calls()) {
      ASSERT_FALSE(*one.got);
      auto const& why = one.got->error();
      EXPECT_TRUE(why.code == errc::resolve_failed || why.code == errc::deadline_exceeded) << why;
      EXPECT_EQ(why.phase, phase::resolve) << why;
      EXPECT_EQ(why.effect, effect::none) << why;
      EXPECT_LT(one.took(), 100ms + slack);
    }
  }
  EXPECT_LT(steady::now() - start, 200ms + 2 * slack);
}

TEST(sockets, are_found_by_name_whatever_the_family) {
  // "localhost" may lead to ::1 first, where nobody listens.
  scripted_server server(scripted_server::plain());
  running_context context;
  auto options = patient(towards(server));
  options.address.host = "localhost";
  client redis(context.io(), options);
  auto const got = call(redis, command("GET", "k"));
  ASSERT_TRUE(got) << got.error();
}

}  // namespace
