// SPDX-License-Identifier: BSL-1.0
//
// Calls that complete in another io_context than their client's: in order, each in a function of its own.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include "net_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace redoubt::test_support;
using redoubt::client;
using redoubt::command;
using redoubt::reply;
using redoubt::result;

/// A client that runs, and a context for completions that runs only when a test says so.
class other_context : public testing::Test {
 protected:
  static constexpr int count = 50;

  /// `count` calls that complete in `other` by `done(number)`, all answered when this returns.
  template <class Done>
  void call(Done done) {
    for (int i = 0; i < count; ++i) {
      redis.async_call(command("GET", "k"), {},
                       asio::bind_executor(other->get_executor(), [i, done](result<reply> r) {
                         EXPECT_TRUE(r.has_value());
                         done(i);
                       }));
    }
    answered += count;
    ASSERT_TRUE(
        eventually([&] { return redis.snapshot().answered >= answered && redis.snapshot().in_flight == 0; }));
    // What was answered last may still be on its way over: another call on the client's own context is behind
    // it.
    redis.async_call(command("GET", "k"), {}, asio::use_future).get().value();
    ++answered;
  }

  scripted_server server{scripted_server::plain()};
  running_context context;
  std::unique_ptr<asio::io_context> other = std::make_unique<asio::io_context>();
  client redis{context.io(), patient(towards(server))};
  std::uint64_t answered = 0;
};

TEST_F(other_context, C79_calls_complete_there_in_order) {
  std::vector<int> order;
  call([&](int i) {
    EXPECT_TRUE(other->get_executor().running_in_this_thread());
    order.push_back(i);
  });
  EXPECT_TRUE(order.empty());
  other->run();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(other_context, each_completion_is_a_function_of_its_own) {
  int ended = 0;
  call([&](int) { ++ended; });
  for (int i = 1; i <= count; ++i) {
    EXPECT_EQ(other->run_one(), 1u);
    EXPECT_EQ(ended, i);
  }
  EXPECT_EQ(other->run(), 0u) << "no work is left";
}

TEST_F(other_context, stop_comes_between_two_completions) {
  int ended = 0;
  call([&](int) {
    if (++ended % 10 == 0) other->stop();
  });
  for (int i = 1; i <= count / 10; ++i) {
    other->restart();
    other->run();
    EXPECT_EQ(ended, 10 * i);
  }
}

TEST_F(other_context, an_exception_is_its_own_handlers) {
  int ended = 0;
  call([&](int i) {
    ++ended;
    if (i == 7) throw std::runtime_error("a handler's");
  });
  EXPECT_THROW(other->run(), std::runtime_error);
  EXPECT_EQ(ended, 8);
  other->run();
  EXPECT_EQ(ended, count);
}

TEST_F(other_context, several_threads_share_completions) {
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  call([&](int) {
    ++inside;
    auto const by = steady::now() + 5s;
    while (inside < 2 && !met && steady::now() < by) std::this_thread::yield();
    met = met || inside >= 2;
    --inside;
  });
  std::thread second([&] { other->run(); });
  other->run();
  second.join();
  EXPECT_TRUE(met) << "a handler that takes its time does not hold the next one up";
}

TEST_F(other_context, completions_that_start_calls_go_on) {
  int ended = 0;
  std::function<void(int)> again = [&](int) {
    if (++ended > count) return;
    redis.async_call(command("GET", "k"), {},
                     asio::bind_executor(other->get_executor(), [&](result<reply> r) {
                       EXPECT_TRUE(r.has_value());
                       again(0);
                     }));
  };
  call(again);
  other->run();  // calls under way are its work
  EXPECT_EQ(ended, 2 * count);
}

TEST_F(other_context, a_context_that_ends_frees_what_did_not_complete) {
  auto const owned = std::make_shared<int>(1);
  call([owned](int) { FAIL() << "the context has ended"; });
  EXPECT_GT(owned.use_count(), 1);
  other.reset();
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_TRUE(redis.async_call(command("GET", "k"), {}, asio::use_future).get().has_value());
}

TEST(completion_order, is_that_of_the_calls_while_more_come_from_another_thread) {
  scripted_server server(scripted_server::plain());
  running_context context;
  auto options = patient(towards(server));
  options.bounds.in_flight = 100'000;
  client redis(context.io(), options);
  constexpr int count = 20'000;
  std::vector<int> order;  // the context's one thread only
  order.reserve(count);
  std::atomic<int> ended = 0;
  for (int i = 0; i < count; ++i) {
    redis.async_call(command("GET", "k"), {}, [&, i](result<reply> r) {
      EXPECT_TRUE(r.has_value());
      order.push_back(i);
      ++ended;
    });
  }
  ASSERT_TRUE(eventually([&] { return ended == count; }));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(other_context, an_erased_executor_is_the_same) {
  std::vector<int> order;
  asio::any_io_executor const erased = other->get_executor();
  for (int i = 0; i < count; ++i) {
    redis.async_call(command("GET", "k"), {},
                     asio::bind_executor(erased, [&order, i](auto&&) { order.push_back(i); }));
  }
  other->run();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
