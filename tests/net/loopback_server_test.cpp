// SPDX-License-Identifier: BSL-1.0
//
// The fake server behind real sockets, talked to by plain blocking ones.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <redoubt/testing/loopback_server.hpp>

#include "raw_redis.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::time_point;
using redoubt::test_support::encode;
using redoubt::test_support::raw_redis;
using redoubt::testing::fake_server;
using redoubt::testing::loopback_server;
using kind = fake_server::fault::kind;

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

/// A TCP connection that is tried without blocking: 0 when it is made within the time, else the error number.
int try_connect(int port, std::chrono::milliseconds limit) {
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int error = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    error = ::poll(&wait, 1, static_cast<int>(limit.count())) == 0 ? ETIMEDOUT : 0;
    if (error == 0) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  ::close(fd);
  return error;
}

TEST(loopback_server, serves_on_a_free_port) {
  loopback_server server;
  ASSERT_NE(server.port(), 0);
  raw_redis a(server.port());
  raw_redis b(server.port());
  EXPECT_EQ(a.call({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(b.call({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_EQ(server.connections(), 2u);
  server.with([](fake_server& fake, time_point now) { EXPECT_EQ(fake.get("k", now), "v"); });
  a.close();
  for (int i = 0; i < 200 && server.connections() != 1; ++i) ::usleep(1000);
  EXPECT_EQ(server.connections(), 1u);
}

TEST(loopback_server, serves_on_a_unix_socket) {
  auto const path =
      (std::filesystem::temp_directory_path() / ("redoubt-loopback-" + std::to_string(::getpid()))).string();
  {
    loopback_server server({.tcp = false, .unix_path = path});
    EXPECT_EQ(server.port(), 0);
    EXPECT_EQ(server.unix_path(), path);
    raw_redis c(path);
    EXPECT_EQ(c.call({"PING"}), "+PONG\r\n");
    server.kill();
    EXPECT_TRUE(c.wait_closed());
    EXPECT_THROW(raw_redis{path}, std::system_error);
    server.restart();
    raw_redis again(path);
    EXPECT_EQ(again.call({"PING"}), "+PONG\r\n");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(loopback_server, passes_on_exceptions_of_with) {
  loopback_server server;
  EXPECT_THROW(server.with([](fake_server&, time_point) { throw std::runtime_error("x"); }),
               std::runtime_error);
  raw_redis c(server.port());
  EXPECT_EQ(c.call({"PING"}), "+PONG\r\n");
}

TEST(loopback_server, large_values_go_through_in_both_directions) {
  loopback_server server;
  raw_redis c(server.port());
  std::string const value(20 << 20, 'x');
  EXPECT_EQ(c.call({"SET", "k", value}), "+OK\r\n");
  EXPECT_EQ(c.call({"GET", "k"}).size(), value.size() + 13);
}

TEST(loopback_server, paused_it_accepts_and_reads_nothing) {
  loopback_server server;
  raw_redis before(server.port());
  before.call({"PING"});
  server.pause();
  raw_redis after(server.port());
  EXPECT_EQ(before.call({"INCR", "k"}, 50ms), "<nothing>");
  EXPECT_EQ(after.call({"INCR", "k"}, 50ms), "<nothing>");
  server.with([](fake_server& fake, time_point) { EXPECT_EQ(fake.count("INCR"), 0u); });
  server.resume();
  EXPECT_TRUE(before.read());
  EXPECT_TRUE(after.read());
  server.with([](fake_server& fake, time_point now) { EXPECT_EQ(fake.get("k", now), "2"); });
}

TEST(loopback_server, killed_it_resets_and_refuses_until_restarted_on_the_same_port) {
  loopback_server server;
  raw_redis c(server.port());
  c.call({"SET", "k", "v"});
  server.kill();
  EXPECT_TRUE(c.wait_closed());
  EXPECT_EQ(try_connect(server.port(), 1000ms), ECONNREFUSED);
  server.restart();
  raw_redis again(server.port());
  EXPECT_EQ(again.call({"GET", "k"}), "$-1\r\n");
}

TEST(loopback_server, does_what_the_faults_say) {
  loopback_server server;
  auto const inject = [&](fake_server::fault f) {
    server.with([&](fake_server& fake, time_point) { fake.inject(std::move(f)); });
  };
  inject({.command = "GET", .what = kind::delay, .delay = 80ms});
  raw_redis c(server.port());
  auto const start = std::chrono::steady_clock::now();
  EXPECT_EQ(c.call({"GET", "k"}), "$-1\r\n");
  EXPECT_GE(since(start), 80ms);

  inject({.command = "ECHO", .what = kind::cut, .cut_after = 6});
  c.send(encode({"ECHO", "hello"}));
  EXPECT_TRUE(c.wait_closed());
  EXPECT_EQ(c.pending(), "$5\r\nhe");

  raw_redis d(server.port());
  inject({.command = "INCR", .what = kind::reset_after_execution});
  d.send(encode({"INCR", "n"}));
  EXPECT_TRUE(d.wait_closed());
  server.with([](fake_server& fake, time_point now) { EXPECT_EQ(fake.get("n", now), "1"); });
}

TEST(loopback_server, held_writes_are_applied_when_the_time_has_come) {
  loopback_server server;
  raw_redis c(server.port());
  server.with([](fake_server& fake, time_point now) { fake.pause_writes(now + 60ms); });
  auto const start = std::chrono::steady_clock::now();
  EXPECT_EQ(c.call({"INCR", "k"}), ":1\r\n");
  EXPECT_GE(since(start), 50ms);
}

TEST(loopback_server, a_server_that_does_not_read_fills_the_senders_buffer) {
  loopback_server server;
  raw_redis c(server.port());
  c.call({"PING"});
  server.stop_reading();
  EXPECT_EQ(c.call({"PING"}, 30ms), "<nothing>");
  server.start_reading();
  EXPECT_EQ(c.read(), "+PONG\r\n");

  server.stop_reading();
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string const block(1 << 20, 'x');
  long sent = 0;
  for (int stuck = 0; stuck < 5 && sent < (64 << 20);) {
    auto const n = ::send(fd, block.data(), block.size(), MSG_NOSIGNAL);
    if (n > 0) sent += n;
    stuck = n < 0 ? stuck + 1 : 0;
    if (n < 0) ::usleep(2000);
  }
  EXPECT_LT(sent, 64 << 20);
  ::close(fd);
}

TEST(loopback_server, drips) {
  loopback_server server;
  raw_redis c(server.port());
  server.drip(2, 5ms);
  auto const start = std::chrono::steady_clock::now();
  EXPECT_EQ(c.call({"ECHO", "0123456789"}), "$10\r\n0123456789\r\n");  // 17 bytes: nine pieces
  EXPECT_GE(since(start), 8 * 5ms);
  server.stop_dripping();
  EXPECT_EQ(c.call({"PING"}), "+PONG\r\n");
}

TEST(loopback_server, a_full_backlog_lets_connecting_hang) {
  loopback_server server;
  raw_redis before(server.port());
  server.fill_backlog();
  EXPECT_EQ(before.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(try_connect(server.port(), 100ms), ETIMEDOUT);
  EXPECT_EQ(try_connect(server.port(), 100ms), ETIMEDOUT);
  server.drain_backlog();
  EXPECT_EQ(try_connect(server.port(), 5000ms), 0);
  raw_redis after(server.port());
  EXPECT_EQ(after.call({"PING"}), "+PONG\r\n");
}

TEST(loopback_server, ends_with_connections_open_and_work_pending) {
  auto server = std::make_unique<loopback_server>();
  raw_redis c(server->port());
  server->with([](fake_server& fake, time_point now) {
    fake.inject({.command = "GET", .what = kind::delay, .delay = 10s});
    fake.pause_writes(now + 10s);
  });
  c.send(encode({"GET", "k"}) + encode({"SET", "k", "v"}));
  ::usleep(10'000);
  auto const start = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(since(start), 1000ms);
  EXPECT_TRUE(c.wait_closed());
}

TEST(loopback_server, too_many_clients_are_told_and_closed) {
  loopback_server server({.server = {.clients_max = 1}});
  raw_redis first(server.port());
  first.call({"PING"});
  raw_redis second(server.port());
  EXPECT_EQ(second.read(), "-ERR max number of clients reached\r\n");
  EXPECT_TRUE(second.wait_closed());
}

}  // namespace
