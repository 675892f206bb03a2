// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/admission.hpp>

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
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

using closed = admission<fail_closed, test::stub_client>;
using open = admission<fail_open, test::stub_client>;

static_assert(!std::is_constructible_v<bool, ticket<fail_closed>>);

template <class Admission>
asio::awaitable<typename Admission::ticket_type> enter(Admission& a, std::string id) {
  auto out = co_await a.enter(id);
  co_return out;
}

struct admission_policy : ::testing::Test {
  test::virtual_context world;
  test::stub_client redis{world.executor()};
  test::recording_sink events;
  admission_options payment{.name = "payment", .key = "payment:", .hold = 30s, .events = &events};
  std::map<std::string, time_point> entries;

  /// SET NX PX as Redis does it.
  void remember() {
    redis.on_call = [this](words const& w) {
      auto const found = entries.find(w.at(1));
      if (found != entries.end() && found->second > world.now()) return test::nil();
      entries[w.at(1)] = world.now() + std::chrono::milliseconds(std::stoll(w.at(5)));
      return test::ok();
    };
  }
};

TEST_F(admission_policy, A_37_C118_one_command_admits_exactly_one) {
  remember();
  closed a(redis, payment);
  int admitted = 0;
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    a.enter("7", {},
            [&](ticket<fail_closed> t) { (t.verdict() == verdict::admitted ? admitted : refused) += 1; });
  }
  world.run();
  EXPECT_EQ(admitted, 1);
  EXPECT_EQ(refused, 9);
  std::set<std::string> tokens;
  for (auto const& w : redis.seen) {
    ASSERT_EQ(w.size(), 6u);
    EXPECT_EQ(w, (words{"SET", "payment:7", w[2], "NX", "PX", "30000"}));
    EXPECT_EQ(w[2].size(), 32u);
    EXPECT_EQ(w[2].find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(w[2]);
  }
  EXPECT_EQ(tokens.size(), 10u) << "every entry has a token of its own";
  EXPECT_EQ(events.count(event_kind::admission_refused), 9u);
}

TEST_F(admission_policy, A_40_the_entry_stays_for_the_whole_hold_and_nothing_deletes_it) {
  remember();
  closed a(redis, payment);
  EXPECT_EQ(world.run(enter(a, "7")).verdict(), verdict::admitted);
  world.run_for(29'999ms);
  EXPECT_EQ(world.run(enter(a, "7")).verdict(), verdict::refused);
  world.run_for(1ms);
  EXPECT_EQ(world.run(enter(a, "7")).verdict(), verdict::admitted);
  EXPECT_EQ(redis.count("DEL"), 0u);
  EXPECT_EQ(world.run(enter(a, "8")).verdict(), verdict::admitted) << "another order";
}

TEST_F(admission_policy, A_39_A_41_the_idempotency_key_is_the_same_on_every_try) {
  remember();
  redis.prefix = "shop:";
  closed a(redis, payment);
  auto const first = world.run(enter(a, "7"));
  EXPECT_EQ(first.idempotency_key(), "shop:payment:7");
  EXPECT_EQ(redis.seen[0][1], "shop:payment:7");
  EXPECT_EQ(world.run(enter(a, "7")).idempotency_key(), "") << "nobody may charge with it";
  world.run_for(31s);
  EXPECT_EQ(world.run(enter(a, "7")).idempotency_key(), first.idempotency_key());

  payment.idempotency_prefix = "shop:order:";
  closed named(redis, payment);
  world.run_for(31s);
  EXPECT_EQ(world.run(enter(named, "7")).idempotency_key(), "shop:order:7");
}

TEST_F(admission_policy, A_42_a_key_per_attempt_is_possible) {
  remember();
  payment.idempotency = idempotency::per_attempt;
  closed a(redis, payment);
  auto const first = world.run(enter(a, "7"));
  world.run_for(31s);
  auto const second = world.run(enter(a, "7"));
  EXPECT_NE(first.idempotency_key(), second.idempotency_key());
  EXPECT_EQ(first.idempotency_key(), "payment:7:" + redis.seen[0][2]);
}

TEST_F(admission_policy, A_38_C124_closed_everything_that_is_not_a_clear_answer_is_unavailable) {
  closed a(redis, payment);
  std::vector<test::answer> const all{
      test::silence(),
      test::fails(errc::connection_refused),
      test::fails(errc::connection_lost, effect::unknown),
      test::fails(errc::queue_full),
      test::says("OOM command not allowed when used memory > 'maxmemory'."),
      test::says("READONLY You can't write against a read only replica."),
      test::says("LOADING Redis is loading the dataset in memory"),
      test::says("NOPERM this user has no permissions to access one of the keys"),
      test::number(1),
      test::text("OK"),
  };
  for (auto const& one : all) {
    redis.on_call = [&](words const&) { return one; };
    auto const start = world.now();
    auto const t = world.run(enter(a, "7"));
    EXPECT_EQ(t.verdict(), verdict::unavailable) << t;
    EXPECT_EQ(t.idempotency_key(), "");
    EXPECT_NE(t.error().code, errc::unspecified);
    EXPECT_LE(world.now() - start, a.worst_case());
  }
  EXPECT_EQ(a.snapshot().unavailable, all.size());
  EXPECT_EQ(events.count(event_kind::admission_unavailable), all.size());
  EXPECT_EQ(redis.seen.size(), all.size()) << "asked once each";
}

TEST_F(admission_policy, C120_a_lost_reply_is_neither_admitted_nor_refused_and_says_so) {
  closed a(redis, payment);
  redis.on_call = [](words const&) { return test::fails(errc::connection_lost, effect::unknown); };
  auto const lost = world.run(enter(a, "7"));
  EXPECT_EQ(lost.verdict(), verdict::unavailable);
  EXPECT_EQ(lost.error().effect, effect::unknown);
  EXPECT_EQ(a.snapshot().uncertain, 1u);
  redis.on_call = [](words const&) { return test::fails(errc::connection_refused); };
  EXPECT_EQ(world.run(enter(a, "7")).error().effect, effect::none);
  EXPECT_EQ(a.snapshot().uncertain, 1u);
}

TEST_F(admission_policy, A_43_open_admits_when_unavailable_and_never_on_a_mistake) {
  open a(redis, payment);
  redis.on_call = [](words const&) { return test::fails(errc::connection_refused); };
  auto const t = world.run(enter(a, "7"));
  EXPECT_EQ(t.verdict(), open_verdict::admitted);
  EXPECT_TRUE(t.degraded());
  EXPECT_EQ(t.idempotency_key(), "payment:7");
  redis.on_call = [](words const&) { return test::says("NOPERM no"); };
  auto const mistake = world.run(enter(a, "7"));
  EXPECT_EQ(mistake.verdict(), open_verdict::error);
  EXPECT_EQ(mistake.idempotency_key(), "");
  remember();
  EXPECT_FALSE(world.run(enter(a, "7")).degraded());
  EXPECT_EQ(world.run(enter(a, "7")).verdict(), open_verdict::refused);
  auto const s = a.snapshot();
  EXPECT_EQ(s.requests, s.admitted + s.degraded + s.refused + s.unavailable + s.errors);
}

TEST_F(admission_policy, A_12_cancellation_never_admits) {
  open a(redis, payment);
  asio::cancellation_signal signal;
  std::optional<ticket<fail_open>> got;
  a.enter("7", {}, asio::bind_cancellation_slot(signal.slot(), [&](ticket<fail_open> t) {
            got.emplace(std::move(t));
          }));
  world.run_for(5ms);
  signal.emit(asio::cancellation_type::terminal);
  world.settle();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->verdict(), open_verdict::error);
  EXPECT_EQ(got->error().code, errc::cancelled);
  EXPECT_EQ(got->error().effect, effect::unknown) << "it was sent";
  EXPECT_EQ(events.all.size(), 0u);
}

TEST_F(admission_policy, a_seed_makes_tokens_repeatable_and_the_default_does_not) {
  auto const token = [](std::optional<std::uint64_t> seed, std::uint64_t n) {
    return detail::entry_token(seed, n);
  };
  EXPECT_EQ(token(1, 0), token(1, 0));
  EXPECT_NE(token(1, 0), token(1, 1));
  EXPECT_NE(token(std::nullopt, 0), token(std::nullopt, 0));
}

TEST_F(admission_policy, tickets_print_as_one_sentence) {
  std::ostringstream out;
  out << ticket<fail_closed>(true, "k") << "; " << ticket<fail_closed>(false, "k");
  failure f;
  f.code = errc::deadline_exceeded;
  f.phase = phase::read;
  f.elapsed = 150ms;
  out << "; " << ticket<fail_closed>(f, "k");
  EXPECT_EQ(out.str(),
            "admitted; refused; unavailable: deadline exceeded after 150 ms while reading: it may have been "
            "executed");
}

TEST_F(admission_policy, options_name_the_bad_field) {
  auto const field = [this](admission_options o) -> std::string {
    try {
      closed a(redis, std::move(o));
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.key = "k", .hold = 0s}), "hold");
  EXPECT_EQ(field({.key = "k", .hold = 30s, .handler_limit = 30s}), "hold");
  EXPECT_EQ(field({.key = "k", .hold = 30s, .handler_limit = 0s}), "handler_limit");
  EXPECT_EQ(field({.key = "k", .hold = 30s, .handler_limit = 29s}), "accepted");
}

}  // namespace
