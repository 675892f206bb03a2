// SPDX-License-Identifier: BSL-1.0
//
// What the tests of cache_aside share: a cache over a scripted client, in virtual time.
#pragma once

#include <redoubt/policy/cache_aside.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "recording_sink.hpp"
#include "stub_client.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;
using test::words;

using cache = cache_aside<std::string, std::string, test::stub_client>;

[[maybe_unused]] asio::awaitable<void> pause(duration d) {
  timer clock(co_await asio::this_coro::executor);
  boost::system::error_code stopped;
  co_await clock.async_wait_until(clock.now() + d, asio::redirect_error(asio::use_awaitable, stopped));
}

struct cache_aside_policy : ::testing::Test {
  test::virtual_context world;
  test::stub_client redis{world.executor()};
  test::recording_sink events;
  int loads = 0;
  std::vector<deadline> load_deadlines;
  /// What the next loads do.
  std::function<asio::awaitable<result<std::string>>(std::string)> source =
      [](std::string key) -> asio::awaitable<result<std::string>> { co_return "db:" + key; };

  std::optional<cache> made;

  cache& make(cache::options o) {
    o.events = &events;
    made.emplace(
        redis,
        [this](std::string const& key, deadline by) {
          ++loads;
          load_deadlines.push_back(by);
          return source(key);
        },
        std::move(o));
    return *made;
  }
  cache& make() { return make({.key = "price:", .ttl = 60s}); }

  outcome<std::string> get(cache& c, std::string key = "A-1", deadline by = {}) {
    return world.run(one(c, std::move(key), by));
  }
  static asio::awaitable<outcome<std::string>> one(cache& c, std::string key, deadline by) {
    auto out = co_await c.get(key, by);
    co_return out;
  }

  /// A keyspace of one value, as a healthy Redis would have it.
  void remember() {
    redis.on_call = [this](words const& w) {
      if (w[0] == "GET") return stored ? test::text(*stored) : test::nil();
      if (w[0] == "SET") stored = w[2];
      if (w[0] == "DEL") return test::number(std::exchange(stored, std::nullopt) ? 1 : 0);
      return test::ok();
    };
  }
  std::optional<std::string> stored;

  void balance() {
    auto const s = made->snapshot();
    EXPECT_EQ(s.requests, s.cached + s.loaded + s.refused + s.failed + s.cancelled);
    EXPECT_EQ(s.database_loads, static_cast<std::uint64_t>(loads));
  }
  void TearDown() override {
    world.run();
    if (made) balance();
  }
};

}  // namespace
