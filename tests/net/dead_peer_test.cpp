// SPDX-License-Identifier: BSL-1.0
//
// Paths that die in silence, drip, or take nothing: found in time, and no call waits for them longer than it
// may.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <thread>

#include <redoubt/testing/fault_proxy.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
using redoubt::testing::fault_proxy;
using redoubt::testing::proxy_faults;

client_options towards(fault_proxy const& proxy) { return {.address = {.port = proxy.port()}}; }

struct dead_peer : ::testing::Test {
  scripted_server server{scripted_server::plain()};
  fault_proxy proxy{{.server_port = server.port()}};
  running_context context;
};

TEST_F(dead_peer, C27_a_path_that_has_died_under_traffic_is_left_within_a_second_and_a_half) {
  client redis(context.io(), towards(proxy));
  ASSERT_TRUE(first_success(redis, 10s));
  for (int round = 0; round < 3; ++round) {
    proxy.freeze_connections();
    auto const back = first_success(redis, 10s);
    ASSERT_TRUE(back);
    EXPECT_LE(*back, 1500ms + (strict() ? 0ms : slack)) << ms(*back);
    RecordProperty("first_success_ms_" + std::to_string(round), std::to_string(ms(*back)));
  }
  EXPECT_EQ(redis.snapshot().lost, 3U);
}

TEST_F(dead_peer, C27_a_path_that_has_died_while_idle_is_found_before_anybody_waits_for_it) {
  auto options = towards(proxy);
  options.reconnect.stall_limit = 200ms;
  options.reconnect.ping_interval = 1s;
  client redis(context.io(), options);
  ASSERT_TRUE(first_success(redis, 10s));
  auto const cut = steady::now();
  proxy.freeze_connections();
  ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == 1; }));
  EXPECT_LE(steady::now() - cut, 1250ms + slack);
  auto const got = call(redis, command("GET", "k"), {.budget = 10s});
  EXPECT_TRUE(got) << "the first caller does not pay: " << got.error();
}

TEST_F(dead_peer, C27_a_healthy_idle_connection_is_kept_and_asked_once_per_interval) {
  auto options = patient(towards(proxy));
  options.reconnect.ping_interval = 50ms;
  client redis(context.io(), options);
  for (int kill = 0; kill < 3; ++kill) {
    ASSERT_TRUE(call(redis, command("ECHO", "1")));
    auto const before = server.count("PING");
    EXPECT_TRUE(eventually([&] { return server.count("PING") >= before + 4; }, 10s))
        << "after " << kill << " kills";
    auto const now = redis.snapshot();
    EXPECT_EQ(now.lost, static_cast<std::uint64_t>(kill));
    EXPECT_EQ(now.discarded_replies, 0U);
    EXPECT_EQ(now.late_owed, 0U);
    EXPECT_EQ(now.in_flight, 0U);
    proxy.reset_connections();
    ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == static_cast<std::uint64_t>(kill) + 1; }));
  }
}

/// An option of the socket that is connected to `port`; -1 when there is none.
int option_of_socket_towards(std::uint16_t port, int level, int name) {
  for (int fd = 3; fd < 4096; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    int value = -1;
    size = sizeof value;
    return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
  }
  return -1;
}

TEST_F(dead_peer, C27_the_kernel_watches_the_connection_too) {
  auto options = towards(proxy);
  options.reconnect.stall_limit = 1200ms;
  client redis(context.io(), options);
  ASSERT_TRUE(first_success(redis, 10s));
  EXPECT_EQ(option_of_socket_towards(proxy.port(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of_socket_towards(proxy.port(), IPPROTO_TCP, TCP_KEEPIDLE), 2);
  EXPECT_EQ(option_of_socket_towards(proxy.port(), IPPROTO_TCP, TCP_KEEPINTVL), 2);
  EXPECT_EQ(option_of_socket_towards(proxy.port(), IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option_of_socket_towards(proxy.port(), IPPROTO_TCP, TCP_USER_TIMEOUT), 3600);
  EXPECT_EQ(option_of_socket_towards(proxy.port(), IPPROTO_TCP, TCP_NODELAY), 1);
}

void expect_within(crowd const& all, std::vector<duration> const& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    EXPECT_EQ(all[i].completions, 1);
    auto const most = strict() ? limits[i] * 105 / 100 : limits[i] + slack;
    EXPECT_LE(all[i].took(), most) << "call " << i << ": " << ms(all[i].took());
  }
}

TEST_F(dead_peer, C10_a_server_that_drips_ends_every_call_within_its_limit) {
  client redis(context.io(), towards(proxy));
  ASSERT_TRUE(first_success(redis, 10s));
  proxy.change([](proxy_faults& f) {
    f.to_client.slice = 1;
    f.to_client.slice_pause = 50ms;
  });
  crowd all(60);
  std::vector<duration> limits;
  for (std::size_t i = 0; i < 60; ++i) {
    call_options options;
    if (i % 2 == 0) options.budget = 200ms + std::chrono::milliseconds(i * 10);
    limits.push_back(options.budget.value_or(100ms));
    all.start(redis, i, command("GET", std::to_string(i)), options);
    std::this_thread::sleep_for(10ms);
  }
  ASSERT_TRUE(all.wait());
  expect_within(all, limits);
  std::size_t answered = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    if (*all[i].got) {
      ++answered;
      EXPECT_EQ((*all[i].got)->as_string(), "value of " + std::to_string(i));
    }
  }
  EXPECT_LT(answered, 10U) << "a reply takes longer than a second";
  EXPECT_EQ(redis.snapshot().lost, 0U) << "every byte is a sign of life";
  proxy.set({});
  EXPECT_TRUE(first_success(redis, 10s));
}

TEST_F(dead_peer, C20_a_full_send_buffer_ends_every_call_within_its_limit) {
  client redis(context.io(), towards(proxy));
  ASSERT_TRUE(first_success(redis, 10s));
  proxy.change([](proxy_faults& f) { f.to_server.blackhole = true; });
  crowd all(30);
  std::vector<duration> limits;
  std::string const large(std::size_t{1} << 20, 'x');
  for (std::size_t i = 0; i < 30; ++i) {
    call_options options;
    options.budget = 100ms + std::chrono::milliseconds(i * 10);
    limits.push_back(*options.budget);
    all.start(redis, i, command("SET", std::to_string(i), i < 12 ? large : "small"), options);
  }
  ASSERT_TRUE(all.wait());
  expect_within(all, limits);
  for (auto const& one : all.calls()) EXPECT_FALSE(*one.got);
  EXPECT_EQ(redis.snapshot().in_flight, 0U);
  EXPECT_EQ(redis.snapshot().queued_bytes, 0U);
  EXPECT_EQ(server.count("SET"), 0U);
  proxy.set({});
  EXPECT_TRUE(first_success(redis, 10s));
}

}  // namespace
