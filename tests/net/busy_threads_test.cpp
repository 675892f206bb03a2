// SPDX-License-Identifier: BSL-1.0
//
// C14: handlers that block. On a thread of their own they cost others nothing; on the client's only thread
// they cost everybody as long as they block, and not a moment more.
#include <atomic>
#include <thread>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

TEST(busy_threads, C14_a_handler_that_blocks_its_own_executor_delays_no_other_call) {
  scripted_server server(scripted_server::plain());
  running_context context;
  running_context users;
  client redis(context.io(), towards(server));
  ASSERT_TRUE(first_success(redis, 10s));
  std::atomic<bool> release = false;
  std::atomic<bool> blocked = false;
  redis.async_call(command("GET", "k"), {.budget = 10s}, asio::bind_executor(users.io(), [&](result<reply>) {
                     blocked = true;
                     while (!release) std::this_thread::sleep_for(1ms);
                   }));
  ASSERT_TRUE(eventually([&] { return blocked.load(); }));
  crowd all(50);
  for (std::size_t i = 0; i < 50; ++i)
    all.start(redis, i, command("GET", std::to_string(i)), {.budget = 100ms + slack});
  ASSERT_TRUE(all.wait(10s)) << all.ended() << " ended while the handler blocks";
  release = true;
  for (auto const& one : all.calls()) EXPECT_TRUE(*one.got) << one.got->error();
}

TEST(busy_threads, C14_a_handler_that_blocks_the_only_thread_lets_calls_end_right_after_it) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) {
      if (is(*command, "PING")) p.answer(*command);
    }
  });
  running_context context;
  client redis(context.io(), towards(server));
  ASSERT_TRUE(first_success(redis, 10s));
  std::atomic<bool> blocked = false;
  steady::time_point freed{};
  crowd all(50);
  for (std::size_t i = 0; i < 50; ++i) all.start(redis, i, command("GET", "k"), {.budget = 100ms});
  asio::post(context.io(), [&] {
    blocked = true;
    std::this_thread::sleep_for(500ms);
    freed = steady::now();
  });
  ASSERT_TRUE(eventually([&] { return blocked.load(); }));
  ASSERT_TRUE(all.wait(10s));
  for (auto const& one : all.calls()) {
    EXPECT_EQ(one.completions, 1);
    ASSERT_FALSE(*one.got);
    EXPECT_EQ(one.got->error().code, errc::deadline_exceeded) << one.got->error();
    EXPECT_LE(one.ended - freed, 50ms + slack);
  }
}

}  // namespace
