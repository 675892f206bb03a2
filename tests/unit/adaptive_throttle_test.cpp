// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/adaptive_throttle.hpp>

#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

failure failed(errc code, bool rejected = false) {
  failure f;
  f.code = code;
  f.effect = effect::none;
  f.rejected = rejected;
  return f;
}

TEST(adaptive_throttle, what_a_failure_says_about_the_service) {
  for (auto code :
       {errc::deadline_exceeded, errc::connection_refused, errc::connection_lost, errc::resolve_failed,
        errc::remote_failed, errc::remote_throttled, errc::protocol_error}) {
    EXPECT_EQ(adaptive_throttle::accepted(failed(code)), false) << code;
  }
  for (auto code : {errc::remote_rejected, errc::unexpected_reply}) {
    EXPECT_EQ(adaptive_throttle::accepted(failed(code)), true) << code;
  }
  for (auto code : {errc::cancelled, errc::bulkhead_full, errc::queue_full, errc::rate_limited,
                    errc::load_failed, errc::request_too_large, errc::refused_command}) {
    EXPECT_EQ(adaptive_throttle::accepted(failed(code)), std::nullopt) << code;
  }
  EXPECT_EQ(adaptive_throttle::accepted(failed(errc::connection_refused, true)), std::nullopt);
}

TEST(adaptive_throttle, a_dead_service_is_spared_and_a_living_one_gets_everything) {
  test::virtual_context world;
  adaptive_throttle throttle({.name = "psp", .ratio = {.window = 10s}, .seed = 1});
  bool alive = false;
  int sent = 0;
  auto operation = [&](deadline) -> asio::awaitable<result<int>> {
    ++sent;
    result<int> out(failed(errc::connection_refused));
    if (alive) out = 1;
    co_return out;
  };
  auto const go = [&]() -> asio::awaitable<result<int>> {
    auto out = co_await throttle.run<int>(world.executor(), {}, operation);
    co_return out;
  };
  auto const second_of_load = [&] {
    sent = 0;
    for (int i = 0; i < 100; ++i) {
      (void)world.run(go());
      world.run_for(10ms);
    }
    return sent;
  };
  for (int i = 0; i < 10; ++i) (void)second_of_load();
  EXPECT_NEAR(second_of_load(), 10, 9) << "one of ten still asks";
  auto const refused = throttle.snapshot();
  EXPECT_GT(refused.refused, 700u);
  EXPECT_NEAR(refused.refused_share, 0.9, 0.01);

  alive = true;
  for (int i = 0; i < 35; ++i) (void)second_of_load();
  EXPECT_EQ(second_of_load(), 100);
  EXPECT_EQ(throttle.snapshot().refused_share, 0);
  auto const s = throttle.snapshot();
  EXPECT_EQ(s.admitted, s.accepted + s.failed);
}

TEST(adaptive_throttle, a_refusal_is_our_own_and_names_no_time) {
  adaptive_throttle throttle({.name = "psp", .ratio = {.most = 0.999}, .seed = 1});
  time_point const now{1h};
  for (int i = 0; i < 2000; ++i) throttle.on_failure(failed(errc::connection_refused), now);
  result<void> got;
  for (int i = 0; i < 100 && got; ++i) got = throttle.try_enter(now);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::rate_limited);
  EXPECT_EQ(got.error().group(), failure_class::saturated);
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_EQ(got.error().retry_after, 0ns);
  EXPECT_NE(got.error().message().find("psp"), std::string::npos);
}

TEST(adaptive_throttle, idle_time_forgets_the_outage) {
  adaptive_throttle throttle({.seed = 1});
  time_point const now{1h};
  for (int i = 0; i < 100; ++i) throttle.on_failure(failed(errc::connection_refused), now);
  EXPECT_GT(throttle.snapshot().refused_share, 0.8);
  EXPECT_TRUE(throttle.try_enter(now + 1min));
  EXPECT_EQ(throttle.snapshot().refused_share, 0);
}

TEST(adaptive_throttle, options_name_the_bad_field) {
  EXPECT_THROW(adaptive_throttle({.ratio = {.multiplier = 0}}), option_error);
}

TEST(adaptive_throttle, C100_an_operation_that_throws_is_a_failure_and_says_nothing) {
  test::virtual_context world;
  adaptive_throttle throttle({.seed = 1});
  auto throwing = [](deadline) -> asio::awaitable<result<int>> {
    throw std::runtime_error("no");
    co_return 1;
  };
  std::optional<result<int>> got;
  throttle.run<int>(world.executor(), {}, throwing, [&](result<int> r) { got.emplace(std::move(r)); });
  world.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::load_failed);
  EXPECT_EQ(throttle.snapshot().accepted + throttle.snapshot().failed, 0u);
}

}  // namespace
