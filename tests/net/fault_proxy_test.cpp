// SPDX-License-Identifier: BSL-1.0
//
// The fault proxy, between plain blocking sockets and a scripted server.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/testing/fault_proxy.hpp>

#include "net_rig.hpp"
#include "raw_redis.hpp"
#include "scripted_server.hpp"

namespace {

using namespace redoubt::test_support;
using redoubt::testing::fault_proxy;
using redoubt::testing::proxy_faults;

struct relay {
  scripted_server server{scripted_server::plain()};
  fault_proxy proxy{{.server_port = server.port()}};
  [[nodiscard]] raw_redis connect() const { return raw_redis(proxy.port()); }
};

redoubt::duration time_of(raw_redis& redis, std::string const& reply = "+PONG\r\n") {
  auto const start = steady::now();
  EXPECT_EQ(redis.call({"PING"}), reply);
  return steady::now() - start;
}

TEST(fault_proxy, passes_everything_on) {
  relay r;
  auto redis = r.connect();
  EXPECT_EQ(redis.call({"PING"}), "+PONG\r\n");
  std::string const large(std::size_t{3} << 20, 'x');  // more than it holds
  EXPECT_EQ(redis.call({"ECHO", large}), bulk(large));
  auto const seen = r.proxy.counters();
  EXPECT_EQ(seen.accepted, 1U);
  EXPECT_EQ(seen.open, 1U);
  EXPECT_EQ(seen.bytes_to_server, encode({"PING"}).size() + encode({"ECHO", large}).size());
  EXPECT_EQ(seen.bytes_to_client, 7 + bulk(large).size());
  redis.close();
  EXPECT_TRUE(eventually([&] { return r.server.open() == 0 && r.proxy.counters().open == 0; }));
  EXPECT_EQ(r.proxy.counters().cut, 0U);
  EXPECT_EQ(r.proxy.counters().reset, 0U);
}

TEST(fault_proxy, delays_either_direction_and_keeps_the_order) {
  relay r;
  auto redis = r.connect();
  proxy_faults faults;
  faults.to_server.delay = 40ms;
  faults.to_client = {.delay = 60ms, .jitter = 30ms};
  r.proxy.set(faults);
  EXPECT_GE(time_of(redis), 100ms);
  std::string sent;
  std::string wanted;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(redis.send(encode({"ECHO", std::to_string(i)})));
    if (i % 10 == 0) std::this_thread::sleep_for(2ms);  // so that it becomes several pieces
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(redis.read(), bulk(std::to_string(i)));
  r.proxy.set({});
  EXPECT_EQ(redis.call({"PING"}), "+PONG\r\n");
}

TEST(fault_proxy, takes_faults_back_from_bytes_under_way) {
  relay r;
  auto redis = r.connect();
  proxy_faults faults;
  faults.to_client.slice = 1;
  faults.to_client.slice_pause = 1h;
  r.proxy.set(faults);
  ASSERT_TRUE(redis.send(encode({"PING"})));
  ASSERT_TRUE(eventually([&] { return r.proxy.counters().bytes_to_client == 1; }));
  EXPECT_FALSE(redis.read(20ms));
  r.proxy.set({});
  EXPECT_EQ(redis.read(), "+PONG\r\n");
  r.proxy.change([](proxy_faults& f) { f.to_client.delay = 1h; });
  ASSERT_TRUE(redis.send(encode({"ECHO", "late"})));
  EXPECT_FALSE(redis.read(20ms));
  r.proxy.set({});
  EXPECT_EQ(redis.read(), bulk("late"));
}

TEST(fault_proxy, sends_pieces_of_the_size_it_was_told) {
  relay r;
  auto redis = r.connect();
  r.proxy.change([](proxy_faults& f) {
    f.to_client.slice = 1;
    f.to_client.slice_pause = 5ms;
  });
  EXPECT_GE(time_of(redis), 30ms);  // seven bytes, six pauses
  EXPECT_EQ(r.proxy.faults().to_client.slice, 1U);
}

TEST(fault_proxy, narrows) {
  relay r;
  auto redis = r.connect();
  r.proxy.change([](proxy_faults& f) { f.to_server.bandwidth = 100'000; });
  auto const start = steady::now();
  std::string const text(20'000, 'x');
  EXPECT_EQ(redis.call({"ECHO", text}), bulk(text));
  EXPECT_GE(steady::now() - start, 150ms);  // 200 ms for it all, the last piece's pause excluded
}

TEST(fault_proxy, cuts_after_exactly_so_many_bytes) {
  relay r;
  for (bool const with_reset : {false, true}) {
    r.proxy.set({});
    auto redis = r.connect();
    ASSERT_EQ(redis.call({"PING"}), "+PONG\r\n");
    r.proxy.change([&](proxy_faults& f) {
      f.to_client.cut_after = 7 + 4;
      f.to_client.cut_with_reset = with_reset;
    });
    ASSERT_TRUE(redis.send(encode({"PING"})));
    EXPECT_TRUE(redis.wait_closed());
    if (!with_reset) {
      EXPECT_EQ(redis.pending(), "+PON");
    }
  }
  EXPECT_TRUE(eventually([&] { return r.server.open() == 0; })) << "the server's side ends too";
  EXPECT_EQ(r.proxy.counters().cut, 1U);
  EXPECT_EQ(r.proxy.counters().reset, 1U);
  EXPECT_EQ(r.proxy.counters().bytes_to_client, 22U);
}

TEST(fault_proxy, swallows_either_direction_and_gives_it_back) {
  relay r;
  auto redis = r.connect();
  ASSERT_EQ(redis.call({"PING"}), "+PONG\r\n");
  r.proxy.change([](proxy_faults& f) { f.to_client.blackhole = true; });
  ASSERT_TRUE(redis.send(encode({"ECHO", "1"})));
  EXPECT_TRUE(eventually([&] { return r.server.count("ECHO", "1") == 1; })) << "the other way is open";
  EXPECT_FALSE(redis.read(30ms));
  EXPECT_FALSE(redis.closed());
  r.proxy.set({});
  EXPECT_EQ(redis.read(), bulk("1"));

  r.proxy.change([](proxy_faults& f) { f.to_server.blackhole = true; });
  ASSERT_TRUE(redis.send(encode({"ECHO", "2"})));
  EXPECT_FALSE(redis.read(30ms));
  EXPECT_EQ(r.server.count("ECHO", "2"), 0U);
  r.proxy.set({});
  EXPECT_EQ(redis.read(), bulk("2"));
}

TEST(fault_proxy, freezes_what_is_open_and_nothing_else) {
  relay r;
  auto old = r.connect();
  ASSERT_EQ(old.call({"PING"}), "+PONG\r\n");
  r.proxy.freeze_connections();
  ASSERT_TRUE(old.send(encode({"PING"})));
  auto fresh = r.connect();
  EXPECT_EQ(fresh.call({"PING"}), "+PONG\r\n");
  EXPECT_FALSE(old.read(30ms));
  EXPECT_FALSE(old.closed());
}

TEST(fault_proxy, ends_what_is_open) {
  relay r;
  auto first = r.connect();
  ASSERT_EQ(first.call({"PING"}), "+PONG\r\n");
  r.proxy.reset_connections();
  EXPECT_TRUE(first.wait_closed());
  auto second = r.connect();
  ASSERT_EQ(second.call({"PING"}), "+PONG\r\n");
  r.proxy.close_connections();
  EXPECT_TRUE(second.wait_closed());
  auto const seen = r.proxy.counters();
  EXPECT_EQ(seen.reset, 1U);
  EXPECT_EQ(seen.cut, 1U);
  EXPECT_EQ(seen.open, 0U);
}

TEST(fault_proxy, refuses_and_listens_again_on_the_same_port) {
  relay r;
  auto const port = r.proxy.port();
  auto old = r.connect();
  ASSERT_EQ(old.call({"PING"}), "+PONG\r\n");  // so it is accepted, and not only on its way in
  r.proxy.change([](proxy_faults& f) { f.refuse = true; });
  EXPECT_THROW((void)r.connect(), std::system_error);
  EXPECT_EQ(old.call({"PING"}), "+PONG\r\n") << "open connections live on";
  r.proxy.set({});
  auto fresh = r.connect();
  EXPECT_EQ(fresh.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(r.proxy.port(), port);
}

TEST(fault_proxy, accepts_slowly) {
  relay r;
  r.proxy.change([](proxy_faults& f) { f.accept_delay = 60ms; });
  auto const start = steady::now();
  auto redis = r.connect();
  EXPECT_EQ(redis.call({"PING"}), "+PONG\r\n");
  EXPECT_GE(steady::now() - start, 60ms);
  EXPECT_LT(time_of(redis), 60ms + slack) << "only once";
}

TEST(fault_proxy, resets_a_client_whose_server_is_not_there) {
  relay r;
  r.server.refuse();
  auto redis = r.connect();
  EXPECT_TRUE(redis.wait_closed());
  EXPECT_EQ(r.proxy.counters().server_failed, 1U);
}

TEST(fault_proxy, passes_an_exception_of_a_change_on) {
  relay r;
  EXPECT_THROW(r.proxy.change([](proxy_faults&) { throw std::runtime_error("mine"); }), std::runtime_error);
  auto redis = r.connect();
  EXPECT_EQ(redis.call({"PING"}), "+PONG\r\n");
}

TEST(fault_proxy, ends_with_connections_open_and_bytes_under_way) {
  scripted_server server(scripted_server::plain());
  for (int i = 0; i < 20; ++i) {
    fault_proxy proxy({.server_port = server.port(), .seed = 7});
    raw_redis redis(proxy.port());
    proxy.change([](proxy_faults& f) { f.to_client.delay = 1h; });
    ASSERT_TRUE(redis.send(encode({"PING"})));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
  }
}

}  // namespace
