// SPDX-License-Identifier: BSL-1.0
//
// C77: a client belongs to the process that made it. A child says so and leaves the parent's connection
// alone.
#include <memory>
#include <vector>

#include <redoubt/testing/fault_proxy.hpp>

#include "forked.hpp"
#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;
using redoubt::testing::fault_proxy;

/// A parent that runs its context itself, with five calls under way.
struct parent : ::testing::Test {
  parent()
      : server([this](peer& p) {
          if (!p.greet()) return;
          while (auto const command = p.read()) p.later(100ms, server.answer_of(*command));
        }) {
    auto options = patient({.address = {.port = proxy.port()}});
    redis = std::make_unique<client>(*io, options);
    run_until([this] { return ask("first").has_value(); });
    for (int i = 0; i < 5; ++i) {
      redis->async_call(command("GET", std::to_string(i)), {},
                        [this](result<reply> r) { results.push_back(std::move(r)); });
    }
    run_until([this] { return redis->snapshot().owed == 5 && server.count("GET") == 6; });
    bytes = proxy.counters().bytes_to_server;
  }

  result<reply> ask(std::string const& name) {
    std::optional<result<reply>> got;
    redis->async_call(command("GET", name), {}, [&](result<reply> r) { got = std::move(r); });
    run_until([&] { return got.has_value(); });
    return std::move(got.value());
  }

  template <class Done>
  void run_until(Done done) {
    auto const end = steady::now() + 20s;
    while (!done() && steady::now() < end) {
      io->restart();
      io->run_one_for(5ms);
    }
  }

  void expect_unharmed() {
    EXPECT_EQ(proxy.counters().bytes_to_server, bytes) << "the child wrote";
    EXPECT_EQ(results.size(), 0U);
    run_until([this] { return results.size() == 5; });
    ASSERT_EQ(results.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(results[i]) << results[i].error();
      EXPECT_EQ(results[i]->as_string(), "value of " + std::to_string(i));
    }
    for (int i = 0; i < 3; ++i) {
      auto const got = ask("after");
      EXPECT_TRUE(got) << got.error();
    }
    EXPECT_EQ(redis->snapshot().lost, 0U);
    EXPECT_EQ(server.accepted(), 1U);
    EXPECT_EQ(server.count("SET"), 0U);
  }

  scripted_server server;
  fault_proxy proxy{{.server_port = server.port()}};
  std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
  std::unique_ptr<client> redis;
  std::vector<result<reply>> results;
  std::uint64_t bytes = 0;
};

TEST_F(parent, C77_a_child_that_uses_the_client_is_told_and_the_parent_is_unharmed) {
  auto const code = fork_and(*io, [this] {
    io->notify_fork(asio::execution_context::fork_child);
    std::optional<result<reply>> got;
    redis->async_call(command("SET", "child", "1"), {}, [&](result<reply> r) { got = std::move(r); });
    run_until([&] { return got && results.size() == 5; });
    if (!got || *got) return 1;
    if (got->error().code != errc::forked || got->error().effect != effect::none) return 2;
    if (results.size() != 5) return 3;
    for (auto const& one : results) {
      if (one || one.error().code != errc::closed || one.error().effect != effect::unknown) return 4;
    }
    redis.reset();
    io.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  expect_unharmed();
}

TEST_F(parent, C77_a_child_that_only_exits_through_destructors_says_nothing_to_the_server) {
  EXPECT_EQ(fork_and(*io,
                     [this] {
                       redis->async_call(command("SET", "child", "1"), {}, [](result<reply>) {});
                       redis.reset();
                       io.reset();
                       return 0;
                     }),
            0);
  expect_unharmed();
}

TEST_F(parent, C77_a_child_makes_a_client_of_its_own) {
  auto const code = fork_and(*io, [this] {
    asio::io_context own;
    client mine(own, patient({.address = {.port = server.port()}}));
    std::optional<result<reply>> got;
    mine.async_call(command("GET", "mine"), {}, [&](result<reply> r) { got = std::move(r); });
    auto const end = steady::now() + 20s;
    while (!got && steady::now() < end) own.run_one_for(5ms);
    return got && *got && (*got)->as_string() == "value of mine" ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(server.accepted(), 2U);
}

}  // namespace
