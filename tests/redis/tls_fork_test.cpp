// SPDX-License-Identifier: BSL-1.0
//
// C77 over TLS: a child that was forked says nothing on the parent's connection, not even TLS' own goodbye,
// which would end it for both.
#include <memory>
#include <optional>

#include <redoubt/testing/fault_proxy.hpp>

#include "forked.hpp"
#include "tls_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

struct tls_parent : ::testing::Test {
  tls_parent() {
    redis = std::make_unique<client>(*io, over_tls(proxy.port(), ca));
    auto const got = ask(command("SET", "owner", "parent"));
    EXPECT_TRUE(got) << got.error();
    bytes = proxy.counters().bytes_to_server;
  }

  result<reply> ask(command what) {
    std::optional<result<reply>> got;
    redis->async_call(std::move(what), {}, [&](result<reply> r) { got = std::move(r); });
    auto const end = steady::now() + 20s;
    while (!got && steady::now() < end) {
      io->restart();
      io->run_one_for(5ms);
    }
    return std::move(got.value());
  }

  void expect_unharmed() {
    EXPECT_EQ(proxy.counters().bytes_to_server, bytes) << "the child wrote";
    for (int i = 0; i < 3; ++i) {
      auto const got = ask(command("GET", "owner"));
      ASSERT_TRUE(got) << got.error();
      EXPECT_EQ(got->as_string(), "parent");
    }
    EXPECT_EQ(redis->snapshot().readied, 1U);
    EXPECT_EQ(redis->snapshot().lost, 0U);
  }

  authority ca;
  tls_redis server{ca, ca.issue({.names = "DNS:localhost"})};
  redoubt::testing::fault_proxy proxy{{.server_port = server.tls_port()}};
  std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
  std::unique_ptr<client> redis;
  std::uint64_t bytes = 0;
};

TEST_F(tls_parent, C77_a_child_that_uses_the_client_is_told_and_the_parent_is_unharmed) {
  auto const code = fork_and(*io, [this] {
    io->notify_fork(asio::execution_context::fork_child);
    auto const got = ask(command("SET", "owner", "child"));
    if (got || got.error().code != errc::forked || got.error().effect != effect::none) return 1;
    redis.reset();
    io.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  expect_unharmed();
}

TEST_F(tls_parent, C77_a_child_that_only_exits_through_destructors_says_nothing_to_the_server) {
  EXPECT_EQ(fork_and(*io,
                     [this] {
                       redis->async_call(command("SET", "owner", "child"), {}, [](result<reply>) {});
                       redis.reset();
                       io.reset();
                       return 0;
                     }),
            0);
  expect_unharmed();
}

}  // namespace
