// SPDX-License-Identifier: BSL-1.0
//
// A reply never reaches another call: cancellation at any moment, transactions among other calls, commands
// that would change a shared connection.
#include <atomic>
#include <future>
#include <memory>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/core/random.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// Answers every command `delay` after it came, without holding up those behind it.
scripted_server::script delayed(scripted_server*& server, duration delay) {
  return [&server, delay](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) p.later(delay, server->answer_of(*command));
  };
}

/// One caller who gives up, and one who does not, over and over.
asio::awaitable<void> give_up_and_ask(client& redis, std::uint64_t seed, int rounds, duration longest,
                                      int& mismatches, int& cancelled) {
  random_source random(seed);
  auto const executor = co_await asio::this_coro::executor;
  for (int i = 0; i < rounds; ++i) {
    auto const name = std::to_string(seed) + ":" + std::to_string(i);
    asio::cancellation_signal stop;
    std::optional<result<reply>> first;
    redis.async_call(
        command("GET", "a" + name), {},
        asio::bind_cancellation_slot(
            stop.slot(), asio::bind_executor(executor, [&](result<reply> r) { first = std::move(r); })));
    asio::steady_timer pause(executor, duration(static_cast<duration::rep>(
                                           random.below(static_cast<std::uint64_t>(longest.count())))));
    co_await pause.async_wait(asio::use_awaitable);
    stop.emit(asio::cancellation_type::terminal);
    auto const second = co_await redis.async_call(command("GET", "b" + name), {}, asio::use_awaitable);
    auto const third = co_await redis.async_call(command("PING"), {}, asio::use_awaitable);
    if (!second || second->as_string() != "value of b" + name) ++mismatches;
    if (!third || third->as_string() != "PONG") ++mismatches;
    while (!first) co_await asio::post(executor, asio::use_awaitable);
    if (*first) {
      if ((*first)->as_string() != "value of a" + name) ++mismatches;
    } else {
      EXPECT_EQ(first->error().code, errc::cancelled) << first->error();
      ++cancelled;
    }
  }
}

TEST(reply_matching, C01_cancel_at_a_random_point_leaves_every_other_call_its_own_reply) {
  scripted_server* self = nullptr;
  scripted_server server(delayed(self, 4ms));
  self = &server;
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  constexpr int callers = 40;
  constexpr int rounds = 60;
  int mismatches = 0;
  int cancelled = 0;
  std::vector<std::future<void>> all;
  auto const one_by_one = asio::make_strand(context.io());
  for (int i = 0; i < callers; ++i) {
    all.push_back(asio::co_spawn(
        one_by_one,
        give_up_and_ask(redis, static_cast<std::uint64_t>(i) + 1, rounds, 6ms, mismatches, cancelled),
        asio::use_future));
  }
  for (auto& one : all) one.get();
  EXPECT_EQ(mismatches, 0);
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_GT(cancelled, callers * rounds / 10);
  EXPECT_LT(cancelled, callers * rounds);
  // Every cancelled call that the server saw left a reply that was read and thrown away; the others were
  // never sent.
  auto const seen = server.log().size() - 3;  // but for the greeting and the first PING
  auto const all_calls = static_cast<std::size_t>(callers) * rounds * 3;
  auto const never_sent = all_calls - seen;
  EXPECT_EQ(redis.snapshot().discarded_replies, static_cast<std::size_t>(cancelled) - never_sent);
  EXPECT_EQ(redis.snapshot().in_flight, 0U);
  std::cout << cancelled << " of " << callers * rounds << " cancelled, " << never_sent
            << " of them before they were sent\n";
}

/// Three calls; the one in the middle is cancelled once `ready` says so.
struct middle {
  explicit middle(client& redis, std::string value) : all(3) {
    all.start(redis, 0, command("GET", "first"));
    redis.async_call(command("SET", "middle", value), {},
                     asio::bind_cancellation_slot(stop.slot(), all.handler(1)));
    all.start(redis, 2, command("GET", "last"));
  }
  /// Emits on the context, where the call was started from its point of view.
  void cancel(running_context& context) {
    std::promise<void> done;
    asio::post(context.io(), [&] {
      at = steady::now();
      stop.emit(asio::cancellation_type::total);
      done.set_value();
    });
    done.get_future().wait();
  }
  void expect(effect what, phase where) {
    ASSERT_TRUE(all.wait());
    ASSERT_TRUE(*all[0].got) << all[0].got->error();
    EXPECT_EQ((*all[0].got)->as_string(), "value of first");
    ASSERT_TRUE(*all[2].got) << all[2].got->error();
    EXPECT_EQ((*all[2].got)->as_string(), "value of last");
    ASSERT_FALSE(*all[1].got);
    auto const& why = all[1].got->error();
    EXPECT_EQ(why.code, errc::cancelled);
    EXPECT_EQ(why.effect, what) << why;
    EXPECT_EQ(why.phase, where) << why;
    EXPECT_LT(all[1].ended - at, slack);
  }

  crowd all;
  asio::cancellation_signal stop;
  steady::time_point at{};
};

TEST(reply_matching, C03_cancelled_while_queued_is_never_sent) {
  std::atomic<bool> may_greet = false;
  scripted_server server([&](peer& p) {
    if (!p.wait_for(may_greet)) return;
    while (auto const command = p.read()) p.answer(*command);
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  middle three(redis, "value");
  ASSERT_TRUE(eventually([&] { return redis.snapshot().state == link_state::handshaking; }));
  three.cancel(context);
  ASSERT_TRUE(eventually([&] { return three.all.ended() == 1; }));
  may_greet = true;
  three.expect(effect::none, phase::handshake);
  EXPECT_EQ(server.count("SET"), 0U);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(reply_matching, C03_cancelled_while_half_written_is_written_to_its_end) {
  std::atomic<bool> may_read = false;
  scripted_server server([&](peer& p) {
    if (!p.greet() || !p.wait_for(may_read)) return;
    while (auto const command = p.read()) p.answer(*command);
  });
  running_context context;
  auto options = patient(towards(server));
  options.bounds.queued_bytes = std::size_t{64} << 20;
  client redis(context.io(), options);
  middle three(redis, std::string(std::size_t{32} << 20, 'x'));
  ASSERT_TRUE(eventually([&] {
    auto const now = redis.snapshot();
    return now.owed == 2 && now.waiting == 1;
  }));
  three.cancel(context);
  ASSERT_TRUE(eventually([&] { return three.all.ended() == 1; }));
  may_read = true;
  three.expect(effect::unknown, phase::write);
  EXPECT_EQ(server.count("SET", "middle"), 1U);
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_EQ(redis.snapshot().discarded_replies, 1U);
}

TEST(reply_matching, C03_cancelled_after_the_write_leaves_a_reply_that_is_dropped) {
  std::atomic<bool> may_answer = false;
  scripted_server server([&](peer& p) {
    if (!p.greet()) return;
    auto const first = p.read();
    auto const second = p.read();
    auto const third = p.read();
    if (!third || !p.wait_for(may_answer)) return;
    for (auto const* one : {&first, &second, &third}) p.answer(**one);
    while (auto const command = p.read()) p.answer(*command);
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  middle three(redis, "value");
  ASSERT_TRUE(eventually([&] { return server.count("GET", "last") == 1; }));
  three.cancel(context);
  ASSERT_TRUE(eventually([&] { return three.all.ended() == 1; }));
  EXPECT_EQ(redis.snapshot().late_owed, 1U);
  may_answer = true;
  three.expect(effect::unknown, phase::read);
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_EQ(redis.snapshot().discarded_replies, 1U);
}

TEST(shared_connection, C07_C08_commands_that_cannot_share_it_are_refused_at_once) {
  redoubt::testing::loopback_server server;
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  std::vector<command> const refused = {command("MULTI"),
                                        command("EXEC"),
                                        command("DISCARD"),
                                        command("WATCH", "k"),
                                        command("UNWATCH"),
                                        command("SUBSCRIBE", "c"),
                                        command("PSUBSCRIBE", "c"),
                                        command("MONITOR"),
                                        command("SELECT", 1),
                                        command("AUTH", "p"),
                                        command("HELLO", 3),
                                        command("CLIENT", "REPLY", "OFF"),
                                        command("RESET"),
                                        command("QUIT"),
                                        command("BLPOP", "missing", 0),
                                        command("brpop", "missing", 0),
                                        command("BLMOVE", "a", "b", "LEFT", "LEFT", 0),
                                        command("BZPOPMIN", "z", 0),
                                        command("XREAD", "BLOCK", 0, "STREAMS", "s", "0"),
                                        command("WAIT", 1, 0)};
  auto fastest = duration::max();
  for (auto const& cmd : refused) {
    auto const start = steady::now();
    auto const got = call(redis, cmd);
    fastest = std::min<duration>(fastest, steady::now() - start);
    ASSERT_FALSE(got) << cmd.name();
    EXPECT_EQ(got.error().code, errc::refused_command) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_EQ(got.error().group(), failure_class::caller_error);
    EXPECT_TRUE(got.error().rejected);
    auto const in_batch =
        redis.async_pipeline(pipeline(command("SET", "k", "v"), cmd), {}, asio::use_future).get();
    ASSERT_EQ(in_batch.size(), 2U);
    for (auto const& one : in_batch) {
      ASSERT_FALSE(one);
      EXPECT_EQ(one.error().code, errc::refused_command) << one.error();
    }
    auto const in_block =
        redis.async_transaction(transaction(command("SET", "k", "v"), cmd), {}, asio::use_future).get();
    ASSERT_FALSE(in_block);
    EXPECT_EQ(in_block.error().code, errc::refused_command) << in_block.error();
  }
  EXPECT_LT(fastest, 1ms);  // of twenty, so that one interruption does not count
  auto const start = steady::now();
  EXPECT_TRUE(call(redis, command("SET", "other", "v")));
  EXPECT_LT(steady::now() - start, 20ms + slack);
  EXPECT_TRUE(call(redis, command("GET", "k"))->is_nil());
  server.with([&](redoubt::testing::fake_server& s, time_point) {
    for (auto const& seen : s.log()) EXPECT_NE(seen.arguments.front(), "MULTI");
  });
}

asio::awaitable<int> ping_often(client& redis, int times) {
  int wrong = 0;
  for (int i = 0; i < times; ++i) {
    auto const got = co_await redis.async_call(command("PING"), {}, asio::use_awaitable);
    if (!got || got->as_string() != "PONG") ++wrong;
  }
  co_return wrong;
}

asio::awaitable<int> transact_often(client& redis, int times) {
  int wrong = 0;
  for (int i = 0; i < times; ++i) {
    auto const value = std::to_string(i);
    auto got = co_await redis.async_transaction(
        transaction(command("SET", "t", value), command("GET", "t"), command("PING")), {},
        asio::use_awaitable);
    if (!got || got->size() != 3 || (*got)[0]->as_string() != "OK" || (*got)[1]->as_string() != value ||
        (*got)[2]->as_string() != "PONG") {
      ++wrong;
    }
  }
  co_return wrong;
}

TEST(shared_connection, C07_a_hundred_others_ping_while_transactions_run) {
  redoubt::testing::loopback_server server;
  running_context context;
  client redis(context.io(), patient(towards(server)));
  std::vector<std::future<int>> all;
  all.push_back(asio::co_spawn(context.io(), transact_often(redis, 200), asio::use_future));
  for (int i = 0; i < 100; ++i)
    all.push_back(asio::co_spawn(context.io(), ping_often(redis, 40), asio::use_future));
  for (auto& one : all) EXPECT_EQ(one.get(), 0);
  EXPECT_EQ(redis.snapshot().readied, 1U);
}

}  // namespace
