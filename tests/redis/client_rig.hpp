// SPDX-License-Identifier: BSL-1.0
//
// What the tests of the client against a real server share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/client.hpp>

#include "client_fixture.hpp"
#include "raw_redis.hpp"
#include "real_redis.hpp"

namespace redoubt::test_support {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// How much later than its time something may happen on a shared machine. What is exact is tested in virtual
/// time.
inline const duration slack = strict() ? 50ms : sanitized ? 1500ms : 500ms;

/// Options towards the server, with limits that no healthy call on a loaded machine reaches.
[[nodiscard]] inline client_options patient(real_redis const& server) {
  return {.address = {.port = static_cast<std::uint16_t>(server.port())},
          .timeouts = {.connect = 20s, .attempt = 20s, .call = 20s},
          .reconnect = {.stall_limit = 30s}};
}

template <class Predicate>
[[nodiscard]] bool eventually(Predicate what, duration limit = 20s) {
  auto const end = steady::now() + limit;
  while (!what()) {
    if (steady::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// The number behind `name` in an INFO section, e.g. `number_in(info, "errorstat_WRONGPASS:count=")`; 0 when
/// absent.
[[nodiscard]] inline std::uint64_t number_in(std::string const& text, std::string_view name) {
  auto const at = text.find(name);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size()));
}

/// What a state of the server does to a write.
struct refusal {
  server_errc code = server_errc::none;
  failure_class group = failure_class::unavailable;
  /// What the caller of a script is told: `none` only where it is certain that the script was not started.
  effect in_script = effect::unknown;
  bool refuses_reads = false;
};

inline void expect_refused(failure const& why, refusal const& wanted, effect what) {
  EXPECT_EQ(why.code, errc::server_error) << why;
  EXPECT_EQ(why.server, wanted.code) << why;
  EXPECT_EQ(why.group(), wanted.group) << why;
  EXPECT_EQ(why.effect, what) << why;
  EXPECT_FALSE(why.rejected) << why;
}

/// The same refusal must be recognised alone, in a pipeline, in a transaction and in a script (C56).
inline void expect_in_every_form(client& redis, refusal const& wanted) {
  namespace asio = boost::asio;
  SCOPED_TRACE(to_string(wanted.code));
  auto const expect_read = [&](result<reply> const& r) {
    if (wanted.refuses_reads) {
      ASSERT_FALSE(r);
      expect_refused(r.error(), wanted, effect::none);
    } else {
      EXPECT_TRUE(r) << r.error();
    }
  };
  expect_read(call(redis, command("GET", "k")));

  auto const alone = call(redis, command("SET", "k", "v"));
  ASSERT_FALSE(alone);
  expect_refused(alone.error(), wanted, effect::none);
  EXPECT_EQ(alone.error().command.view(), "SET");
  EXPECT_EQ(alone.error().phase, phase::done);
  EXPECT_NE(alone.error().message().find("the server said"), std::string::npos);

  auto const batch =
      redis
          .async_pipeline(pipeline(command("GET", "k"), command("SET", "k", "v"), command("GET", "k")), {},
                          asio::use_future)
          .get();
  ASSERT_EQ(batch.size(), 3U);
  expect_read(batch[0]);
  ASSERT_FALSE(batch[1]);
  expect_refused(batch[1].error(), wanted, effect::none);
  expect_read(batch[2]);

  auto const block =
      redis
          .async_transaction(transaction(command("GET", "k"), command("SET", "k", "v")), {}, asio::use_future)
          .get();
  ASSERT_FALSE(block);
  expect_refused(block.error(), wanted, effect::none);

  static script const writing("return redis.call('SET', KEYS[1], ARGV[1])");
  auto const evaluated = redis.async_eval(writing, keys("k"), args("v"), {}, asio::use_future).get();
  ASSERT_FALSE(evaluated);
  expect_refused(evaluated.error(), wanted, wanted.in_script);
  auto const sent_whole = call(redis, command("EVAL", writing.body(), 1, "k", "v"));
  ASSERT_FALSE(sent_whole);
  expect_refused(sent_whole.error(), wanted, wanted.in_script);
}

}  // namespace redoubt::test_support
