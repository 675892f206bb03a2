// SPDX-License-Identifier: BSL-1.0
//
// The fake client in virtual time: calls end when and how the real client would end them.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <redoubt/policy/redis_client.hpp>
#include <redoubt/testing/fake_client.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using namespace redoubt;
using redoubt::testing::fake_client;
using redoubt::testing::fake_client_options;
using redoubt::testing::fake_server;
using kind = fake_server::fault::kind;

static_assert(redis_client<fake_client>);

/// A world with a fake client in it; calls are started and their ends noted.
struct bench {
  explicit bench(fake_client_options options = {}) : redis(w.get_executor(), std::move(options)) {}

  struct ended {
    std::optional<result<reply>> value;
    duration after{};
  };

  std::shared_ptr<ended> start(command cmd, call_options options = {}) {
    auto out = std::make_shared<ended>();
    redis.async_call(std::move(cmd), options, [this, out, from = w.now()](result<reply> r) {
      out->value = std::move(r);
      out->after = w.now() - from;
    });
    EXPECT_FALSE(out->value) << "completed inside the initiating call";
    return out;
  }

  ended call(command cmd, call_options options = {}) {
    auto out = start(std::move(cmd), options);
    EXPECT_TRUE(w.run_until([&] { return out->value.has_value(); }, 10s));
    return *out;
  }

  redoubt::testing::world w;
  fake_client redis;
};

#define EXPECT_FAILURE(ended_call, expected_code, expected_effect, expected_phase, expected_after)           \
  do {                                                                                                       \
    auto const& e = (ended_call);                                                                            \
    ASSERT_TRUE(e.value && !*e.value);                                                                       \
    EXPECT_EQ(e.value->error().code, expected_code);                                                         \
    EXPECT_EQ(e.value->error().effect, expected_effect);                                                     \
    EXPECT_EQ(e.value->error().phase, expected_phase);                                                       \
    EXPECT_EQ(e.after, expected_after);                                                                      \
    EXPECT_EQ(e.value->error().elapsed, expected_after);                                                     \
  } while (false)

TEST(fake_client, answers) {
  bench b;
  EXPECT_EQ(b.call(command("SET", "k", "v")).value->value().as_string(), "OK");
  EXPECT_EQ(b.call(command("GET", "k")).value->value().as_string(), "v");
  EXPECT_EQ(b.redis.redis().get("k", b.w.now()), "v");
  EXPECT_EQ(b.redis.redis().sessions_opened(), 1u);
}

TEST(fake_client, an_error_of_the_server_is_a_failure) {
  bench b;
  b.redis.redis().become_replica();
  auto const r = b.call(command("SET", "k", "v"));
  EXPECT_FAILURE(r, errc::server_error, effect::none, phase::done, 0ms);
  EXPECT_EQ(r.value->error().server, server_errc::readonly);
  EXPECT_EQ(r.value->error().command.view(), "SET");
}

TEST(fake_client, works_with_coroutines_and_keeps_virtual_time) {
  bench b({.key_prefix = "app:"});
  auto const text = b.w.run([](fake_client& redis) -> asio::awaitable<std::string> {
    auto const key = redis.key("k");
    co_await redis.async_call(command("SET", key, "v", "PX", 1000));
    auto got = co_await redis.async_call(command("GET", key), {.budget = 50ms});
    co_return std::string(got->as_string());
  }(b.redis));
  EXPECT_EQ(text, "v");
  EXPECT_TRUE(b.redis.redis().exists("app:k", b.w.now()));
  b.w.run_for(2s);
  EXPECT_FALSE(b.redis.redis().exists("app:k", b.w.now()));
}

TEST(fake_client, a_paused_server_ends_calls_at_their_limits) {
  bench b;
  b.call(command("PING"));
  b.redis.redis().pause();
  auto const first = b.start(command("INCR", "first"));
  auto const with_budget = b.start(command("INCR", "budget"), {.budget = 70ms});
  auto const with_deadline = b.start(command("INCR", "by"), {.by = deadline(b.w.now() + 30ms)});
  b.w.run_for(120ms);
  // A reply is overdue now, so this one is not sent.
  auto const later = b.start(command("INCR", "later"));
  b.w.run_for(10s);
  EXPECT_FAILURE(*first, errc::deadline_exceeded, effect::unknown, phase::read, 100ms);
  EXPECT_FAILURE(*with_budget, errc::deadline_exceeded, effect::unknown, phase::read, 70ms);
  EXPECT_FAILURE(*with_deadline, errc::deadline_exceeded, effect::unknown, phase::read, 30ms);
  EXPECT_FAILURE(*later, errc::deadline_exceeded, effect::none, phase::queue, 100ms);
  EXPECT_EQ(first->value->error().attempts, 1);
  EXPECT_EQ(later->value->error().attempts, 0);

  b.redis.redis().resume(b.w.now());
  EXPECT_EQ(b.call(command("MGET", "first", "budget", "by", "later")).value->value().as_array().size(), 4u);
  EXPECT_TRUE(b.redis.redis().exists("first", b.w.now()));  // executed late, as "unknown" said
  EXPECT_FALSE(b.redis.redis().exists("later", b.w.now()));
}

TEST(fake_client, a_call_that_waits_for_a_paused_server_goes_on_when_it_does) {
  bench b;
  b.call(command("PING"));
  b.redis.redis().pause();
  auto const waiting = b.start(command("INCR", "n"));
  b.w.run_for(40ms);
  b.redis.redis().resume(b.w.now());
  b.w.run_for(0ms);
  ASSERT_TRUE(waiting->value);
  EXPECT_EQ(waiting->value->value().as_integer(), 1);
  EXPECT_EQ(waiting->after, 40ms);
}

TEST(fake_client, a_connection_to_a_paused_server_waits_in_its_handshake) {
  bench b;
  b.redis.redis().pause();
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::deadline_exceeded, effect::none, phase::handshake,
                 100ms);
  auto const second = b.start(command("INCR", "n"));
  b.w.run_for(10ms);
  b.redis.redis().resume(b.w.now());
  b.w.run_for(0ms);
  EXPECT_EQ(second->value->value().as_integer(), 1);
}

TEST(fake_client, a_killed_server_refuses_and_what_is_under_way_is_lost) {
  bench b;
  b.call(command("PING"));
  b.redis.redis().pause();
  auto const under_way = b.start(command("INCR", "n"));
  b.w.run_for(10ms);
  b.redis.redis().kill();
  b.w.run_for(0ms);
  EXPECT_FAILURE(*under_way, errc::connection_lost, effect::unknown, phase::read, 10ms);
  EXPECT_FAILURE(b.call(command("PING")), errc::connection_refused, effect::none, phase::connect, 0ms);
  b.redis.redis().restart(b.w.now());
  EXPECT_TRUE(*b.call(command("PING")).value);
}

TEST(fake_client, no_time_left_sends_nothing) {
  bench b;
  EXPECT_FAILURE(b.call(command("PING"), {.budget = 0ms}), errc::deadline_exceeded, effect::none,
                 phase::queue, 0ms);
  EXPECT_FAILURE(b.call(command("PING"), {.budget = -1ms}), errc::deadline_exceeded, effect::none,
                 phase::queue, 0ms);
  EXPECT_FAILURE(b.call(command("PING"), {.by = deadline(b.w.now() - 1ms)}), errc::deadline_exceeded,
                 effect::none, phase::queue, 0ms);
  EXPECT_EQ(b.redis.redis().count("PING"), 0u);
}

TEST(fake_client, commands_that_cannot_share_a_connection_are_refused) {
  bench b;
  for (auto const* name : {"SUBSCRIBE", "MULTI", "BLPOP", "SELECT", "AUTH"}) {
    EXPECT_FAILURE(b.call(command(name, "x")), errc::refused_command, effect::none, phase::queue, 0ms);
  }
  EXPECT_EQ(b.redis.redis().count(""), 0u);
}

TEST(fake_client, scripted_failures) {
  bench b;
  b.redis.fail_next({.code = errc::queue_full, .effect = effect::none});
  b.redis.fail_next({.code = errc::cancelled, .effect = effect::none});
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::queue_full, effect::none, phase::queue, 0ms);
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::cancelled, effect::none, phase::queue, 0ms);
  EXPECT_EQ(b.call(command("INCR", "n")).value->value().as_integer(), 1);

  b.redis.fail_all({.code = errc::connection_refused, .effect = effect::none, .phase = phase::connect});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILURE(b.call(command("INCR", "n")), errc::connection_refused, effect::none, phase::connect, 0ms);
  }
  b.redis.heal();
  EXPECT_EQ(b.call(command("INCR", "n")).value->value().as_integer(), 2);
}

TEST(fake_client, a_lost_reply_leaves_the_effect_behind) {
  bench b;
  b.redis.lose_next_reply();
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::connection_lost, effect::unknown, phase::read, 0ms);
  EXPECT_EQ(b.call(command("INCR", "n")).value->value().as_integer(), 2);
}

TEST(fake_client, faults_of_the_server) {
  bench b;
  auto& server = b.redis.redis();
  server.inject({.command = "GET", .what = kind::delay, .delay = 30ms});
  auto const slow = b.start(command("GET", "k"));
  auto const behind = b.start(command("PING"));
  b.w.run_for(1s);
  EXPECT_EQ(slow->after, 30ms);
  EXPECT_EQ(behind->after, 30ms);

  server.inject({.command = "GET", .what = kind::delay, .delay = 300ms});
  EXPECT_FAILURE(b.call(command("GET", "k")), errc::deadline_exceeded, effect::unknown, phase::read, 100ms);
  b.w.run_for(1s);
  EXPECT_EQ(b.call(command("ECHO", "mine")).value->value().as_string(), "mine");  // not the late reply

  server.inject({.command = "GET", .what = kind::garbage, .text = "!!!\r\n"});
  EXPECT_FAILURE(b.call(command("GET", "k")), errc::protocol_error, effect::unknown, phase::read, 0ms);
  server.inject({.command = "GET", .what = kind::extra_reply, .text = "+X\r\n"});
  EXPECT_TRUE(*b.call(command("GET", "k")).value);
  EXPECT_EQ(b.call(command("ECHO", "mine")).value->value().as_string(), "mine");
  server.inject({.command = "INCR", .what = kind::reset_after_execution});
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::connection_lost, effect::unknown, phase::read, 0ms);
  server.inject({.command = "INCR", .what = kind::cut, .cut_after = 2});
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::connection_lost, effect::unknown, phase::read, 0ms);
  server.inject({.command = "INCR", .what = kind::silent});
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::deadline_exceeded, effect::unknown, phase::read, 100ms);
  EXPECT_EQ(server.get("n", b.w.now()), "2");
}

TEST(fake_client, held_writes_end_at_the_limit_and_are_applied) {
  bench b;
  b.redis.redis().pause_writes(b.w.now() + 60ms);
  EXPECT_EQ(b.call(command("INCR", "n")).after, 60ms);
  b.redis.redis().pause_writes(b.w.now() + 5s);
  EXPECT_FAILURE(b.call(command("INCR", "n")), errc::deadline_exceeded, effect::unknown, phase::read, 100ms);
}

TEST(fake_client, cancellation) {
  bench b;
  b.redis.redis().inject({.command = "GET", .what = kind::delay, .delay = 50ms});
  asio::cancellation_signal signal;
  bench::ended out;
  b.redis.async_call(command("GET", "k"), {},
                     asio::bind_cancellation_slot(signal.slot(), [&, from = b.w.now()](result<reply> r) {
                       out.value = std::move(r);
                       out.after = b.w.now() - from;
                     }));
  b.w.run_for(20ms);
  signal.emit(asio::cancellation_type::total);
  b.w.run_for(0ms);
  EXPECT_FAILURE(out, errc::cancelled, effect::unknown, phase::read, 20ms);
  EXPECT_EQ(b.call(command("ECHO", "mine")).value->value().as_string(), "mine");
}

TEST(fake_client, pipelines_and_transactions) {
  bench b;
  auto const batch = b.w.run([](fake_client& redis) -> asio::awaitable<fake_client::replies> {
    co_return co_await redis.async_pipeline(
        pipeline(command("SET", "k", "v"), command("INCR", "k"), command("GET", "k")));
  }(b.redis));
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_TRUE(batch[0]);
  EXPECT_EQ(batch[1].error().server, server_errc::err);
  EXPECT_EQ(batch[2]->as_string(), "v");

  auto const run = [&b](transaction t) {
    return b.w.run(
        [](fake_client& redis, transaction block) -> asio::awaitable<result<fake_client::replies>> {
          co_return co_await redis.async_transaction(std::move(block));
        }(b.redis, std::move(t)));
  };
  auto const done = run(transaction(command("INCR", "n"), command("INCR", "n")));
  ASSERT_TRUE(done);
  EXPECT_EQ((*done)[1]->as_integer(), 2);
  b.redis.redis().become_replica();
  auto const refused = run(transaction(command("INCR", "n")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().server, server_errc::readonly);
  EXPECT_EQ(refused.error().effect, effect::none);
  ASSERT_TRUE(run(transaction()));
}

TEST(fake_client, scripts_go_by_their_hash_first_and_get_the_prefix) {
  bench b({.key_prefix = "app:"});
  script const body("return {redis.call('incr', KEYS[1]), KEYS[1], ARGV[1]}");
  auto const run = [&] {
    return b.w.run([](fake_client& redis, script const& s) -> asio::awaitable<result<reply>> {
      co_return co_await redis.async_eval(s, keys("n"), args(7));
    }(b.redis, body));
  };
  auto const first = run();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->as_array()[0].as_integer(), 1);
  EXPECT_EQ(first->as_array()[1].as_string(), "app:n");
  EXPECT_EQ(first->as_array()[2].as_string(), "7");
  EXPECT_EQ(run()->as_array()[0].as_integer(), 2);
  EXPECT_EQ(b.redis.redis().count("EVALSHA"), 2u);
  EXPECT_EQ(b.redis.redis().count("EVAL"), 1u);
  b.redis.redis().inject({.command = "EVALSHA", .what = kind::reset_after_execution});
  EXPECT_EQ(run().error().code, errc::connection_lost);
  EXPECT_EQ(b.redis.redis().count("EVAL"), 1u);  // nothing but NOSCRIPT leads to a second try
}

TEST(fake_client, tells_what_was_asked) {
  bench b;
  b.call(command("SET", "k", "v"));
  b.redis.fail_next({.code = errc::queue_full});
  b.call(command("GET", "k"));
  b.w.run([](fake_client& redis) -> asio::awaitable<bool> {
    auto const r = co_await redis.async_transaction(transaction(command("INCR", "n")));
    co_return r.has_value();
  }(b.redis));
  using words = std::vector<std::string>;
  EXPECT_EQ(b.redis.calls(),
            (std::vector<words>{{"SET", "k", "v"}, {"GET", "k"}, {"MULTI"}, {"INCR", "n"}, {"EXEC"}}));
  b.redis.clear_calls();
  EXPECT_TRUE(b.redis.calls().empty());
}

TEST(fake_client, destruction_ends_everything_once) {
  redoubt::testing::world w;
  int ended = 0;
  {
    fake_client redis(w.get_executor());
    redis.redis().pause();
    for (int i = 0; i < 3; ++i) {
      redis.async_call(command("PING"), {}, [&](result<reply> r) {
        EXPECT_EQ(r.error().code, errc::closed);
        ++ended;
      });
    }
    w.run_for(10ms);
    redis.async_call(command("PING"), {}, [&](result<reply> r) {
      EXPECT_EQ(r.error().effect, effect::none);
      ++ended;
    });
  }
  EXPECT_EQ(ended, 0);
  w.run_for(1s);
  EXPECT_EQ(ended, 4);
}

TEST(fake_client, C80_an_operation_that_is_started_after_it_was_destroyed_is_told_so) {
  redoubt::testing::world w;
  auto redis = std::make_unique<fake_client>(w.get_executor());
  auto later = redis->async_call(command("PING"));  // deferred
  redis.reset();
  std::optional<result<reply>> got;
  std::move(later)([&](result<reply> r) { got.emplace(std::move(r)); });
  EXPECT_FALSE(got);
  w.run_for(1s);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code, errc::closed);
  EXPECT_EQ(got->error().effect, effect::none);
}

TEST(fake_client, may_be_destroyed_by_a_handler) {
  redoubt::testing::world w;
  auto redis = std::make_unique<fake_client>(w.get_executor());
  redis->redis().inject(
      {.command = "EVAL", .what = kind::silent});  // the script's second command is under way
  int ended = 0;
  redis->async_call(command("PING"), {}, [&](result<reply>) {
    redis.reset();
    ++ended;
  });
  redis->async_eval(script("return 1"), keys(), args(), {}, [&](result<reply> r) {
    EXPECT_EQ(r.error().code, errc::closed);
    ++ended;
  });
  w.run_for(1s);
  EXPECT_EQ(ended, 2);
}

TEST(fake_client, runs_on_an_ordinary_context_in_real_time) {
  asio::io_context io;
  fake_client redis(io, {.attempt_timeout = 20ms});
  redis.redis().inject({.command = "GET", .what = kind::silent});
  std::optional<result<reply>> out;
  redis.async_call(command("GET", "k"), {}, [&](result<reply> r) { out = std::move(r); });
  io.run();  // ends by itself: an idle client holds nothing
  ASSERT_TRUE(out && !*out);
  EXPECT_EQ(out->error().code, errc::deadline_exceeded);
  EXPECT_GE(out->error().elapsed, 20ms);
}

TEST(fake_client, refuses_times_that_are_not_positive) {
  asio::io_context io;
  EXPECT_THROW(fake_client(io, {.call_timeout = 0ms}), std::invalid_argument);
  EXPECT_THROW(fake_client(io, {.attempt_timeout = -1ms}), std::invalid_argument);
}

}  // namespace
