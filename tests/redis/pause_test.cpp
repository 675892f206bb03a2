// SPDX-License-Identifier: BSL-1.0
//
// A frozen redis-server under load: how long callers wait, what they are told, and what was executed all the
// same.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client_fixture.hpp"
#include "real_redis.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

std::size_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

/// What became of one call; each has a key of its own.
struct record {
  std::string key;
  bool increment = false;
  steady::time_point started{};
  steady::time_point ended{};
  std::optional<result<reply>> got;
};

class load {
 public:
  explicit load(client& c) : client_(c) {}

  void start(std::string key, bool increment) {
    auto r = std::make_unique<record>();
    r->key = std::move(key);
    r->increment = increment;
    r->started = steady::now();
    auto* const one = r.get();
    {
      std::lock_guard const lock(mutex_);
      records_.push_back(std::move(r));
    }
    client_.async_call(increment ? command("INCR", one->key) : command("GET", one->key), {},
                       [this, one](result<reply> got) {
                         one->ended = steady::now();
                         one->got = std::move(got);
                         ++ended_;
                       });
  }

  void wait_for_all() {
    while (ended_ < records_.size()) std::this_thread::sleep_for(1ms);
  }
  [[nodiscard]] std::vector<std::unique_ptr<record>> const& records() const { return records_; }

 private:
  client& client_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<record>> records_;
  std::atomic<std::size_t> ended_ = 0;
};

TEST(paused_server, every_wait_is_bounded_and_every_failure_is_truthful) {
  real_redis server;
  running_context context;
  constexpr auto limit = 150ms;
  client redis(context.io(), {.address = {.port = static_cast<std::uint16_t>(server.port())},
                              .timeouts = {.connect = limit, .attempt = limit, .call = limit}});
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(call(redis, command("SET", "get:" + std::to_string(i), "value:" + std::to_string(i)),
                     {.budget = 5s}));
  }
  load calls(redis);
  auto const before = resident_kib();
  server.pause();
  int n = 0;
  for (; n < 100; ++n) calls.start((n % 2 ? "incr:" : "get:") + std::to_string(n / 2), n % 2 == 1);
  auto next = steady::now();
  auto const end = next + 5s;
  while (next < end) {
    std::this_thread::sleep_until(next);
    calls.start((n % 2 ? "incr:" : "get:") + std::to_string(n / 2), n % 2 == 1);
    ++n;
    next += 5ms;
  }
  auto const after = resident_kib();
  auto const resumed_at = steady::now();
  server.resume();
  auto const recovery = first_success(redis, 3s);
  auto const recovered_at = steady::now();
  calls.wait_for_all();

  duration longest{};
  int failed_increments = 0;
  int executed_though_failed = 0;
  for (auto const& r : calls.records()) {
    longest = std::max<duration>(longest, r->ended - r->started);
    auto const now_there = call(redis, command("GET", r->key), {.budget = 5s});
    ASSERT_TRUE(now_there) << now_there.error();
    if (*r->got) {
      if (!r->increment) {
        EXPECT_EQ((*r->got)->as_string(), "value:" + r->key.substr(4))
            << "a reply that belongs to another call";
      } else {
        EXPECT_EQ(now_there->as_string(), "1");
      }
      continue;
    }
    if (!r->increment) continue;
    ++failed_increments;
    if (!now_there->is_nil()) {
      ++executed_though_failed;
      EXPECT_EQ(now_there->as_string(), "1") << "executed twice";
      EXPECT_EQ(r->got->error().effect, effect::unknown)
          << r->key << " was executed although its caller was told that it was not: " << r->got->error();
    }
  }
  auto const ms = [](duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  std::cout << n << " calls, longest wait " << ms(longest) << " ms = " << ms(longest) / ms(limit)
            << " of the limit; of " << failed_increments << " INCR that failed, " << executed_though_failed
            << " were executed; first success after resume " << (recovery ? ms(*recovery) : -1)
            << " ms; memory +" << static_cast<long>(after) - static_cast<long>(before) << " KiB\n";
  EXPECT_GE(failed_increments, 500);
  EXPECT_LE(executed_though_failed, 80);
  ASSERT_TRUE(recovery);
  EXPECT_LT(recovered_at - resumed_at, strict() ? duration(5ms) : duration(2s));
  EXPECT_LE(longest, strict() ? limit * 105 / 100 : limit * 4);
  if (strict()) {
    EXPECT_LE(after, before + 2048);
  }
}

TEST(refused_port, C23_the_error_comes_at_once) {
  running_context context;
  real_redis server;
  server.stop();
  client redis(context.io(), {.address = {.port = static_cast<std::uint16_t>(server.port())}});
  std::vector<duration> waits;
  for (int i = 0; i < 101; ++i) {
    auto const start = steady::now();
    auto const got = call(redis, command("GET", "k"), {.budget = 1s});
    waits.push_back(steady::now() - start);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
  }
  std::nth_element(waits.begin(), waits.begin() + 50, waits.end());
  std::cout << "median " << std::chrono::duration<double, std::micro>(waits[50]).count() << " us\n";
  EXPECT_LT(waits[50], strict() ? duration(1ms) : duration(50ms));
}

TEST(restarted_server, C85_first_success_within_the_stated_backoff) {
  running_context context;
  real_redis server;
  server.stop();
  client redis(context.io(), {.address = {.port = static_cast<std::uint16_t>(server.port())}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(redis, command("PING")).error().code, errc::connection_refused);
  auto const until = steady::now() + 2s;  // many refused attempts: the backoff is at its cap
  while (steady::now() < until) {
    EXPECT_FALSE(call(redis, command("PING")));
    std::this_thread::sleep_for(5ms);
  }
  server.start();
  auto const recovery = first_success(redis, 5s);
  ASSERT_TRUE(recovery);
  std::cout << "first success " << std::chrono::duration<double, std::milli>(*recovery).count()
            << " ms after the port was open\n";
  EXPECT_LE(*recovery, strict() ? duration(260ms) : duration(2s));
}

TEST(killed_server, C31_nothing_is_sent_twice_when_the_server_dies_under_load) {
  running_context context;
  real_redis server;
  client redis(context.io(), {.address = {.port = static_cast<std::uint16_t>(server.port())}});
  ASSERT_TRUE(call(redis, command("PING")));
  load calls(redis);
  for (int i = 0; i < 200; ++i) calls.start("incr:" + std::to_string(i), true);
  server.kill();
  calls.wait_for_all();
  for (auto const& r : calls.records()) {
    if (!*r->got) {
      EXPECT_NE(r->got->error().code, errc::unspecified);
    }
  }
  server.start();
  ASSERT_TRUE(first_success(redis, 5s));
}

}  // namespace
