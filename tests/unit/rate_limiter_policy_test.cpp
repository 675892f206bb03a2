// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/rate_limiter.hpp>

#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
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

using closed = rate_limiter<fixed_window, fail_closed, test::stub_client>;
using open = rate_limiter<fixed_window, fail_open, test::stub_client>;

static_assert(!std::is_convertible_v<decision<fail_closed>, bool> &&
              !std::is_constructible_v<bool, decision<fail_closed>>);
static_assert(!std::is_convertible_v<verdict, bool>);
static_assert(std::is_same_v<decision<fail_open>::verdict_type, open_verdict>,
              "a limiter that fails open cannot answer unavailable");

/// A counter as the script keeps it, in the stub.
struct counter_script {
  test::virtual_context& world;
  std::int64_t count = 0;
  time_point ends{};
  test::answer operator()(words const& w) {
    auto const window = std::chrono::milliseconds(std::stoll(w.at(4)));
    if (count == 0 || world.now() >= ends) {
      count = 0;
      ends = world.now() + window;
    }
    return test::pair(++count,
                      std::chrono::duration_cast<std::chrono::milliseconds>(ends - world.now()).count());
  }
};

template <class Limiter>
asio::awaitable<typename Limiter::decision_type> ask(Limiter& l, std::string id, deadline by = {}) {
  auto out = co_await l.admit(id, by);
  co_return out;
}

struct rate_limiter_policy : ::testing::Test {
  test::virtual_context world;
  test::stub_client redis{world.executor()};
  test::recording_sink events;
  rate_limiter_options five{.name = "login", .key = "login:", .limit = 5, .window = 60s, .events = &events};
};

TEST_F(rate_limiter_policy, A_34_eight_concurrent_attempts_admit_five) {
  counter_script script{world};
  redis.on_call = [&](words const& w) { return script(w); };
  closed l(redis, five);
  int admitted = 0;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    l.admit("ann", {},
            [&](decision<fail_closed> d) { (d.verdict() == verdict::admitted ? admitted : refused) += 1; });
  }
  world.run();
  EXPECT_EQ(admitted, 5);
  EXPECT_EQ(refused, 3);
  auto const s = l.snapshot();
  EXPECT_EQ(s.requests, 8u);
  EXPECT_EQ(s.admitted, 5u);
  EXPECT_EQ(s.refused, 3u);
  EXPECT_EQ(s.requests, s.admitted + s.degraded + s.refused + s.unavailable + s.errors);
  EXPECT_EQ(events.count(event_kind::limiter_refused), 3u);
  EXPECT_EQ(events.all.at(0).source, "login");
}

TEST_F(rate_limiter_policy, A_28_A_30_the_window_begins_with_the_first_attempt_and_is_not_prolonged) {
  counter_script script{world};
  redis.on_call = [&](words const& w) { return script(w); };
  closed l(redis, five);
  for (int i = 0; i < 5; ++i) {
    auto const d = world.run(ask(l, "ann"));
    EXPECT_EQ(d.verdict(), verdict::admitted);
    EXPECT_EQ(d.limit(), 5u);
    EXPECT_EQ(d.remaining(), static_cast<std::uint32_t>(4 - i));
    EXPECT_EQ(d.retry_after(), 0ns);
    world.run_for(10s);
  }
  auto const sixth = world.run(ask(l, "ann"));
  EXPECT_EQ(sixth.verdict(), verdict::refused);
  EXPECT_EQ(sixth.remaining(), 0u);
  EXPECT_EQ(sixth.retry_after(), 10s);
  world.run_for(10s);
  EXPECT_EQ(world.run(ask(l, "ann")).verdict(), verdict::admitted);
}

TEST_F(rate_limiter_policy, A_29_A_31_one_call_with_one_key_and_the_window_in_milliseconds) {
  redis.prefix = "shop:";
  redis.on_call = [](words const&) { return test::pair(1, 60000); };
  closed l(redis, five);
  (void)world.run(ask(l, std::string("a\r\n\0b", 5)));
  ASSERT_EQ(redis.seen.size(), 1u);
  EXPECT_EQ(redis.seen[0], (words{"EVALSHA", fixed_window::code().sha1(), "1",
                                  std::string("shop:login:a\r\n\0b", 16), "60000"}));
}

TEST_F(rate_limiter_policy, C113_retry_after_is_at_least_a_millisecond_and_at_most_the_window) {
  closed l(redis, five);
  for (auto const& [left, expected] : std::vector<std::pair<std::int64_t, duration>>{
           {0, 1ms}, {1, 1ms}, {-2, 1ms}, {59'999, 59'999ms}, {60'000, 60s}, {9'000'000'000, 60s}}) {
    redis.on_call = [left = left](words const&) { return test::pair(6, left); };
    EXPECT_EQ(world.run(ask(l, "ann")).retry_after(), expected) << left;
  }
  rate_limiter_options forty_days{.key = "k:", .limit = 1, .window = std::chrono::days(40)};
  closed slow(redis, forty_days);
  redis.on_call = [](words const&) { return test::pair(2, 40LL * 86'400'000); };
  EXPECT_EQ(world.run(ask(slow, "ann")).retry_after(), std::chrono::days(40));
}

TEST_F(rate_limiter_policy, A_32_C114_C117_closed_everything_that_is_no_answer_is_unavailable) {
  closed l(redis, five);
  std::vector<test::answer> const all{
      test::silence(),
      test::fails(errc::connection_refused),
      test::fails(errc::connection_lost, effect::unknown),
      test::fails(errc::queue_full),
      test::fails(errc::closed),
      test::says("READONLY You can't write against a read only replica. script: abc, on @user_script:1."),
      test::says("OOM command not allowed when used memory > 'maxmemory'."),
      test::says("LOADING Redis is loading the dataset in memory"),
      test::says("NOPERM this user has no permissions to run the 'eval' command"),
      test::says("WRONGTYPE Operation against a key holding the wrong kind of value"),
      test::ok(),
      test::nil(),
      test::number(1),
      test::pair(0, 1),
  };
  for (auto const& one : all) {
    redis.on_call = [&](words const&) { return one; };
    auto const start = world.now();
    auto const d = world.run(ask(l, "ann"));
    EXPECT_EQ(d.verdict(), verdict::unavailable) << d;
    EXPECT_FALSE(d.degraded());
    EXPECT_NE(d.error().code, errc::unspecified);
    EXPECT_LE(world.now() - start, l.worst_case());
  }
  auto const s = l.snapshot();
  EXPECT_EQ(s.unavailable, all.size());
  EXPECT_EQ(s.admitted + s.refused + s.degraded + s.errors, 0u);
  EXPECT_EQ(events.count(event_kind::limiter_unavailable), all.size());
  EXPECT_EQ(redis.seen.size(), all.size()) << "A-35: asked once each";
}

TEST_F(rate_limiter_policy, T_6_B_19_open_unavailability_admits_and_is_labelled_and_mistakes_do_not) {
  open l(redis, five);
  for (auto const& outage :
       {test::silence(), test::fails(errc::connection_refused), test::fails(errc::queue_full),
        test::says("OOM command not allowed when used memory > 'maxmemory'."),
        test::says("READONLY You can't write against a read only replica.")}) {
    redis.on_call = [&](words const&) { return outage; };
    auto const d = world.run(ask(l, "ann"));
    EXPECT_EQ(d.verdict(), open_verdict::admitted);
    EXPECT_TRUE(d.degraded());
    EXPECT_NE(d.error().code, errc::unspecified);
  }
  for (auto const& mistake : {test::says("NOAUTH Authentication required."), test::says("NOPERM no"),
                              test::says("ERR syntax"), test::says("WRONGTYPE x"), test::nil()}) {
    redis.on_call = [&](words const&) { return mistake; };
    auto const d = world.run(ask(l, "ann"));
    EXPECT_EQ(d.verdict(), open_verdict::error) << d;
    EXPECT_FALSE(d.degraded());
  }
  redis.on_call = [](words const&) { return test::pair(6, 100); };
  EXPECT_EQ(world.run(ask(l, "ann")).verdict(), open_verdict::refused);
  redis.on_call = [](words const&) { return test::pair(5, 100); };
  auto const fine = world.run(ask(l, "ann"));
  EXPECT_EQ(fine.verdict(), open_verdict::admitted);
  EXPECT_FALSE(fine.degraded());
  auto const s = l.snapshot();
  EXPECT_EQ(s.degraded, 5u);
  EXPECT_EQ(s.errors, 5u);
  EXPECT_EQ(s.unavailable, 0u);
  EXPECT_EQ(s.requests, s.admitted + s.degraded + s.refused + s.unavailable + s.errors);
}

template <class Limiter>
typename Limiter::decision_type cancelled_at(test::virtual_context& world, Limiter& l, duration when) {
  asio::cancellation_signal signal;
  std::optional<typename Limiter::decision_type> got;
  l.admit("ann", {}, asio::bind_cancellation_slot(signal.slot(), [&](auto d) { got.emplace(std::move(d)); }));
  world.run_for(when);
  signal.emit(asio::cancellation_type::total);
  world.settle();
  return got.value();
}

TEST_F(rate_limiter_policy, A_12_cancellation_never_admits) {
  closed c(redis, five);
  open o(redis, five);
  auto const closed_one = cancelled_at(world, c, 10ms);
  EXPECT_EQ(closed_one.verdict(), verdict::unavailable);
  EXPECT_EQ(closed_one.error().code, errc::cancelled);
  auto const open_one = cancelled_at(world, o, 10ms);
  EXPECT_EQ(open_one.verdict(), open_verdict::error);
  EXPECT_EQ(open_one.error().code, errc::cancelled);
  EXPECT_EQ(cancelled_at(world, o, 0ms).verdict(), open_verdict::error);
  EXPECT_EQ(events.all.size(), 0u);
  EXPECT_EQ(o.snapshot().redis_errors, 0u);
}

TEST_F(rate_limiter_policy, the_callers_deadline_tightens) {
  closed l(redis, five);
  auto const d = world.run(ask(l, "ann", world.in(30ms)));
  EXPECT_EQ(d.verdict(), verdict::unavailable);
  EXPECT_EQ(world.elapsed(), 30ms);
  EXPECT_EQ(d.error().code, errc::deadline_exceeded);
}

TEST_F(rate_limiter_policy, decisions_print_as_one_sentence) {
  auto const text = [](auto const& d) {
    std::ostringstream out;
    out << d;
    return out.str();
  };
  EXPECT_EQ(text(decision<fail_closed>(limiter_answer{.admitted = true, .remaining = 3}, 5)),
            "admitted, 3 of 5 left");
  EXPECT_EQ(text(decision<fail_closed>(limiter_answer{.retry_after = 41s}, 5)),
            "refused, try again in 41000 ms");
  failure f;
  f.code = errc::connection_refused;
  f.effect = effect::none;
  f.phase = phase::connect;
  EXPECT_EQ(text(decision<fail_closed>(f, 5)),
            "unavailable: connection refused while connecting: it was not executed");
  EXPECT_EQ(text(decision<fail_open>(f, 5)),
            "admitted, degraded: connection refused while connecting: it was not executed");
}

TEST_F(rate_limiter_policy, options_name_the_bad_field) {
  auto const field = [this](rate_limiter_options o) -> std::string {
    try {
      closed l(redis, std::move(o));
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.key = "k", .limit = 0u, .window = 1s}), "limit");
  EXPECT_EQ(field({.key = "k", .limit = 1u, .window = 0s}), "window");
  EXPECT_EQ(field({.key = "k", .limit = 1u, .window = std::chrono::days(367)}), "window");
  EXPECT_EQ(field({.key = "k", .limit = 1u, .window = std::chrono::days(366)}), "accepted");
}

}  // namespace
