// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/breaker_hint.hpp>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/testing/fake_client.hpp>

#include "recording_sink.hpp"
#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;

using hint = breaker_hint<redoubt::testing::fake_client>;

asio::awaitable<result<void>> exchange(hint& h) {
  result<void> out = co_await h.exchange();
  co_return out;
}

/// A process: its breaker in front of the dependency, and its part of the hint.
struct node {
  node(redoubt::testing::fake_client& redis, std::string name, event_sink* events = nullptr)
      : guard(settings(events)),
        shared(redis, guard, {.key = "breaker:payments", .node = std::move(name), .seed = 1}) {}

  static breaker::options settings(event_sink* events) {
    breaker::options o;
    o.name = "payments";
    o.settings.consecutive = 3;
    o.settings.open = {.floor = 500ms, .base = 500ms, .cap = 500ms};
    o.settings.trial_limit = 100ms;
    o.events = events;
    o.seed = 1;
    return o;
  }
  /// A call to the dependency over this node's path. False: the breaker refused it.
  bool call(time_point now, bool well) {
    auto permit = guard.try_acquire(now);
    if (!permit) {
      refusal = permit.error();
      return false;
    }
    failure f;
    f.code = errc::connection_lost;
    permit->record(well ? result<int>(1) : result<int>(f), now);
    return true;
  }
  void break_path(time_point now) {
    for (int i = 0; i < 3; ++i) call(now, false);
  }
  [[nodiscard]] breaker_phase phase() const { return guard.snapshot().phase; }

  breaker guard;
  hint shared;
  failure refusal{};
};

struct breaker_hint_policy : ::testing::Test {
  test::virtual_context world;
  redoubt::testing::fake_client redis{world.executor(), {.key_prefix = "shop:"}};
  std::vector<std::unique_ptr<node>> nodes;

  void start(int count) {
    for (int i = 1; i <= count; ++i) {
      nodes.push_back(std::make_unique<node>(redis, "node-" + std::to_string(i)));
    }
  }
  void exchange_all() {
    for (auto const& n : nodes) EXPECT_TRUE(world.run(exchange(n->shared)));
  }
};

TEST_F(breaker_hint_policy, C95_one_bad_node_of_five_opens_nobody_else) {
  start(5);
  nodes[0]->break_path(world.now());
  for (int i = 0; i < 20; ++i) {
    exchange_all();
    world.run_for(100ms);
    nodes[0]->call(world.now(), false);  // and its trials fail
  }
  EXPECT_NE(nodes[0]->phase(), breaker_phase::closed);
  EXPECT_TRUE(nodes[0]->shared.snapshot().reported);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(nodes[i]->guard.snapshot().opened, 0u);
    EXPECT_TRUE(nodes[i]->call(world.now(), true));
    EXPECT_EQ(nodes[i]->shared.snapshot().others, 1u) << "they heard it all the same";
  }
}

TEST_F(breaker_hint_policy, C95_two_bad_nodes_open_the_others_once_for_one_period_and_one_trial) {
  start(5);
  test::recording_sink events;
  nodes[4] = std::make_unique<node>(redis, "node-5", &events);
  nodes[0]->break_path(world.now());
  nodes[1]->break_path(world.now());
  exchange_all();
  for (std::size_t i = 2; i < 5; ++i) {
    auto& n = *nodes[i];
    EXPECT_EQ(n.phase(), breaker_phase::open);
    EXPECT_EQ(n.guard.snapshot().advised, 1u);
    EXPECT_EQ(n.shared.snapshot().advised, 1u);
    EXPECT_FALSE(n.call(world.now(), true));
    EXPECT_EQ(n.refusal.cause, errc::breaker_open) << "on advice";
    EXPECT_EQ(n.refusal.retry_after, 500ms);
  }
  ASSERT_EQ(events.count(event_kind::breaker_opened), 1u);
  EXPECT_EQ(events.all[0].cause.code, errc::breaker_open);
  EXPECT_EQ(nodes[0]->guard.snapshot().advised + nodes[1]->guard.snapshot().advised, 0u);
  exchange_all();
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_FALSE(nodes[i]->shared.snapshot().reported) << "hearsay is not passed on as news";
    EXPECT_EQ(nodes[i]->guard.snapshot().advised, 1u);
  }

  world.run_for(500ms);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(nodes[i]->call(world.now(), true)) << "the trial";
  for (int i = 0; i < 15; ++i) {
    exchange_all();
    world.run_for(1s);
    for (auto const& n : nodes) n->call(world.now(), n != nodes[0] && n != nodes[1]);
  }
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_EQ(nodes[i]->guard.snapshot().opened, 1u) << "the trial knew better than the news of before";
  }
}

TEST_F(breaker_hint_policy, C95_an_advised_breaker_whose_own_trial_fails_is_news_itself) {
  start(4);
  nodes[0]->break_path(world.now());
  nodes[1]->break_path(world.now());
  exchange_all();
  world.run_for(500ms);
  EXPECT_TRUE(nodes[2]->call(world.now(), false)) << "the trial";
  exchange_all();
  EXPECT_EQ(nodes[2]->guard.snapshot().cause, errc::connection_lost);
  EXPECT_TRUE(nodes[2]->shared.snapshot().reported);
}

TEST_F(breaker_hint_policy, C95_old_news_are_ignored) {
  start(5);
  nodes[0]->break_path(world.now());
  EXPECT_TRUE(world.run(exchange(nodes[0]->shared)));
  world.run_for(9s);
  nodes[0]->call(world.now(), false);
  nodes[1]->break_path(world.now());
  EXPECT_TRUE(world.run(exchange(nodes[1]->shared)));
  world.run_for(1s);  // the first word is ten seconds old now
  EXPECT_TRUE(world.run(exchange(nodes[2]->shared)));
  EXPECT_EQ(nodes[2]->phase(), breaker_phase::closed);
  EXPECT_EQ(nodes[2]->shared.snapshot().others, 1u);
}

TEST_F(breaker_hint_policy, C95_the_advice_ends_with_the_news_at_the_latest) {
  start(3);
  auto long_period = nodes[2]->guard.settings();
  long_period.open = {.floor = 1h, .base = 1h, .cap = 1h};
  nodes[2]->guard.configure(long_period);
  nodes[0]->break_path(world.now());
  nodes[1]->break_path(world.now());
  exchange_all();
  EXPECT_FALSE(nodes[2]->call(world.now(), true));
  EXPECT_EQ(nodes[2]->refusal.retry_after, 10s);
  world.run_for(10s);
  EXPECT_TRUE(nodes[2]->call(world.now(), true));
  EXPECT_EQ(nodes[2]->phase(), breaker_phase::closed);
}

TEST_F(breaker_hint_policy, C95_what_has_recovered_takes_its_word_back) {
  start(3);
  nodes[0]->break_path(world.now());
  exchange_all();
  world.run_for(500ms);
  EXPECT_TRUE(nodes[0]->call(world.now(), true));
  exchange_all();
  EXPECT_FALSE(nodes[0]->shared.snapshot().reported);
  nodes[1]->break_path(world.now());
  exchange_all();
  EXPECT_EQ(nodes[2]->phase(), breaker_phase::closed);
  EXPECT_EQ(nodes[2]->shared.snapshot().others, 1u);
}

TEST_F(breaker_hint_policy, C95_it_can_be_switched_off) {
  start(4);
  auto alone = nodes[2]->guard.settings();
  alone.follow_advice = false;
  nodes[2]->guard.configure(alone);
  auto by_hand = nodes[3]->guard.settings();
  by_hand.mode = breaker_mode::forced_closed;
  nodes[3]->guard.configure(by_hand);
  nodes[0]->break_path(world.now());
  nodes[1]->break_path(world.now());
  exchange_all();
  for (std::size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(nodes[i]->shared.snapshot().quorums, 1u);
    EXPECT_EQ(nodes[i]->shared.snapshot().advised, 0u);
    EXPECT_EQ(nodes[i]->guard.snapshot().opened, 0u);
  }
}

// The store is frozen, gone, or says something else: calls take no longer, and the local breaker does its
// work.
TEST_F(breaker_hint_policy, C95_without_its_store_a_breaker_works_alone_and_no_call_waits) {
  enum class trouble { frozen, killed, replica, strange };
  for (auto const what : {trouble::frozen, trouble::killed, trouble::replica, trouble::strange}) {
    SCOPED_TRACE(static_cast<int>(what));
    nodes.clear();
    redis.redis().restart(world.now());
    start(3);
    nodes[0]->break_path(world.now());
    nodes[1]->break_path(world.now());
    EXPECT_TRUE(world.run(exchange(nodes[0]->shared)));
    EXPECT_TRUE(world.run(exchange(nodes[1]->shared)));
    switch (what) {
      case trouble::frozen: redis.redis().pause(); break;
      case trouble::killed: redis.redis().kill(); break;
      case trouble::replica: redis.redis().become_replica(); break;
      case trouble::strange: {
        auto const set = [](redoubt::testing::fake_client& r) -> asio::awaitable<result<reply>> {
          command other("SET", "shop:breaker:payments", "x");
          call_options call;
          result<reply> out = co_await r.async_call(std::move(other), call, asio::use_awaitable);
          co_return out;
        };
        EXPECT_TRUE(world.run(set(redis)));
        break;
      }
    }
    auto& n = *nodes[2];
    asio::cancellation_signal stop;
    std::optional<result<void>> ended;
    n.shared.run(asio::bind_cancellation_slot(stop.slot(), [&](result<void> r) { ended = r; }));
    for (int i = 0; i < 5000; ++i) {
      auto const before = world.now();
      ASSERT_TRUE(n.call(before, true));
      ASSERT_EQ(world.now(), before) << "no virtual time passes inside a call";
      world.run_for(1ms);
    }
    auto const s = n.shared.snapshot();
    EXPECT_GE(s.exchanges, 3u);
    EXPECT_EQ(s.failed, s.exchanges);
    EXPECT_LE(s.exchanges, 10u) << "one at a time, and no storm";
    EXPECT_EQ(s.advised, 0u) << "no answer, no opinion";

    auto const before = world.now();
    n.break_path(before);
    EXPECT_EQ(n.phase(), breaker_phase::open) << "by itself";
    EXPECT_EQ(world.now(), before);
    stop.emit(asio::cancellation_type::terminal);
    world.run_for(1s);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->error().code, errc::cancelled);
    redis.redis().resume(world.now());
    world.run();
  }
}

TEST_F(breaker_hint_policy, C95_in_the_background_it_is_heard_within_two_intervals_and_asks_seldom) {
  start(3);
  std::vector<std::unique_ptr<asio::cancellation_signal>> stops;
  for (auto const& n : nodes) {
    stops.push_back(std::make_unique<asio::cancellation_signal>());
    n->shared.run(asio::bind_cancellation_slot(stops.back()->slot(), [](result<void>) {}));
  }
  world.run_for(60s);
  for (auto const& n : nodes) {
    EXPECT_GE(n->shared.snapshot().exchanges, 40u);
    EXPECT_LE(n->shared.snapshot().exchanges, 120u);
    EXPECT_EQ(n->shared.snapshot().failed, 0u);
  }
  nodes[0]->break_path(world.now());
  nodes[1]->break_path(world.now());
  world.run_for(3s);  // at most 1.5 s to say it, and 1.5 s to hear it
  EXPECT_EQ(nodes[2]->shared.snapshot().advised, 1u);
  for (auto const& s : stops) s->emit(asio::cancellation_type::terminal);
  world.run();
}

TEST_F(breaker_hint_policy, C95_the_key_has_the_prefix_and_a_life_and_holds_only_who_is_down) {
  start(2);
  exchange_all();
  auto const ask = [this](command c) {
    auto const go = [](redoubt::testing::fake_client& r, command cmd) -> asio::awaitable<result<reply>> {
      call_options call;
      result<reply> out = co_await r.async_call(std::move(cmd), call, asio::use_awaitable);
      co_return out;
    };
    return *world.run(go(redis, std::move(c)));
  };
  EXPECT_EQ(ask(command("EXISTS", "shop:breaker:payments")).as_integer(), 0);
  nodes[0]->break_path(world.now());
  exchange_all();
  EXPECT_EQ(ask(command("ZCARD", "shop:breaker:payments")).as_integer(), 1);
  EXPECT_EQ(ask(command("PTTL", "shop:breaker:payments")).as_integer(), 10'000);
  world.run_for(5s);
  exchange_all();
  EXPECT_EQ(ask(command("PTTL", "shop:breaker:payments")).as_integer(), 5'000)
      << "said once, not again and again";
}

TEST_F(breaker_hint_policy, C95_answers_that_are_none_are_refused) {
  auto const bad = [](reply const& r) {
    auto const got = detail::read_breaker_reports(r);
    return !got && got.error().code == errc::unexpected_reply;
  };
  EXPECT_TRUE(bad(reply(std::int64_t{1})));
  EXPECT_TRUE(bad(reply(reply::array{reply(std::string("a"))})));
  EXPECT_TRUE(bad(reply(reply::array{reply(std::string("a")), reply(std::string("1"))})));
  EXPECT_TRUE(bad(reply(reply::array{reply(std::int64_t{1}), reply(std::int64_t{1})})));
  auto const most = std::numeric_limits<std::int64_t>::max();
  reply const huge(reply::array{reply(std::string("a")), reply(most), reply(std::string("b")), reply(-most),
                                reply(std::string("c")), reply(std::int64_t{5})});
  auto const got = detail::read_breaker_reports(huge);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1u) << "ages that no duration holds are no news";
  EXPECT_EQ((*got)[0].age, 5ms);
}

TEST_F(breaker_hint_policy, options_name_the_bad_field) {
  breaker guard;
  auto const field = [&](breaker_hint_options o) -> std::string {
    try {
      hint h(redis, guard, std::move(o));
    } catch (option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.key = "k", .node = "n"}), "accepted");
  EXPECT_EQ(field({.key = "", .node = "n"}), "key");
  EXPECT_EQ(field({.key = "k", .node = ""}), "node");
  EXPECT_EQ(field({.key = "k", .node = "n", .interval = 9ms}), "interval");
  EXPECT_EQ(field({.key = "k", .node = "n", .interval = 5001ms}), "interval");
  EXPECT_EQ(field({.key = "k", .node = "n", .quorum = {.nodes = 1}}), "nodes");
}

TEST_F(breaker_hint_policy, A_12_cancelling_it_ends_it_at_once_at_every_point) {
  start(1);
  hint slow(redis, nodes[0]->guard,
            {.key = "breaker:payments", .node = "n", .quorum = {.window = 1h}, .interval = 30min, .seed = 1});
  for (bool const frozen : {true, false}) {
    SCOPED_TRACE(frozen);
    if (frozen) redis.redis().pause();
    asio::cancellation_signal stop;
    std::optional<result<void>> ended;
    slow.run(asio::bind_cancellation_slot(stop.slot(), [&](result<void> r) { ended = r; }));
    world.run_for(10ms);
    ASSERT_FALSE(ended.has_value()) << (frozen ? "in an exchange" : "in a pause");
    stop.emit(asio::cancellation_type::terminal);
    world.run_for(10ms);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->error().code, errc::cancelled);
    if (frozen) redis.redis().resume(world.now());
    world.run_for(1s);
  }
}

}  // namespace
