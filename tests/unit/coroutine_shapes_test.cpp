// SPDX-License-Identifier: BSL-1.0
//
// g++ 12 destroys some temporaries inside a co_await expression twice (docs/decisions/0002). Every shape that
// the interface offers there runs here once; the address sanitizer finds the double free, and a value that
// was lost or doubled shows in what the server was asked.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace redoubt;
using namespace std::chrono_literals;
namespace asio = boost::asio;

// Longer than any small-string buffer, so that each copy owns memory.
std::string const long_key = "a key that is certainly longer than the buffer inside a string";
std::string const long_value = "a value that is certainly longer than the buffer inside a string";

class coroutine_shapes : public ::testing::Test {
 protected:
  /// Runs the coroutine in the world of this test.
  void run(asio::awaitable<void> body) { world_.run(std::move(body)); }

  redoubt::testing::world world_{1};
  client redis_{world_.get_executor(),
                {.url = "redis://redis:6379", .key_prefix = "prefix that owns memory of its own:"}};
};

asio::awaitable<void> command_temporaries(client& redis) {
  auto const set = co_await redis.async_call(command("SET", long_key, long_value));
  EXPECT_TRUE(set.has_value());
  auto const got = co_await redis.async_call(command("GET", long_key));
  EXPECT_EQ(got->as_string(), long_value);
  auto const computed =
      co_await redis.async_call(command("SET", long_key + "2", std::string(100, 'x') + long_value));
  EXPECT_TRUE(computed.has_value());
  auto const prefixed = co_await redis.async_call(command("GET", redis.key(long_key)));
  EXPECT_TRUE(prefixed->is_nil());
  auto const added = co_await redis.async_call(command("MGET").add(long_key).add(std::string_view(long_key)));
  EXPECT_EQ(added->as_array().size(), 2U);
  auto const numbers = co_await redis.async_call(command("SET", "n", 17, "PX", 60'000L));
  EXPECT_TRUE(numbers.has_value());
  // Twice in one full expression.
  EXPECT_EQ((co_await redis.async_call(command("GET", long_key)))->as_string(),
            (co_await redis.async_call(command("GET", long_key)))->as_string());
}

TEST_F(coroutine_shapes, command_temporaries) { run(command_temporaries(redis_)); }

asio::awaitable<void> call_options_in_braces(client& redis) {
  (void)co_await redis.async_call(command("SET", long_key, long_value), {});
  auto const budget = co_await redis.async_call(command("GET", long_key), {.budget = 5ms});
  EXPECT_EQ(budget->as_string(), long_value);
  auto const by =
      co_await redis.async_call(command("GET", long_key), {.by = deadline_after(redis.get_executor(), 1s)});
  EXPECT_EQ(by->as_string(), long_value);
  auto const both = co_await redis.async_call(
      command("GET", long_key), {.budget = 50ms, .by = deadline_after(redis.get_executor(), 1s)},
      asio::use_awaitable);
  EXPECT_EQ(both->as_string(), long_value);
  auto const spelled =
      co_await redis.async_call(command("GET", long_key), call_options{.budget = 5ms}, asio::deferred);
  EXPECT_EQ(spelled->as_string(), long_value);
  bool const hurry = redis.key_prefix().empty();
  auto const chosen = co_await redis.async_call(
      command("GET", long_key), hurry ? call_options{.budget = 1ms} : call_options{.budget = 5ms});
  EXPECT_EQ(chosen->as_string(), long_value);
  auto const none = co_await redis.async_call(command("GET", long_key), {.budget = 0ms});
  EXPECT_EQ(none.error().code, errc::deadline_exceeded);
}

TEST_F(coroutine_shapes, call_options_in_braces) { run(call_options_in_braces(redis_)); }

asio::awaitable<void> pipeline_temporaries(client& redis) {
  auto const got =
      co_await redis.async_pipeline(pipeline(command("SET", long_key, long_value), command("GET", long_key)));
  EXPECT_EQ(got[1]->as_string(), long_value);
  auto const limited = co_await redis.async_pipeline(pipeline(command("GET", long_key)), {.budget = 5ms});
  EXPECT_EQ(limited[0]->as_string(), long_value);
  auto const chained = co_await redis.async_pipeline(
      pipeline().add(command("GET", long_key)).add(command("GET", "no")), {}, asio::use_awaitable);
  EXPECT_EQ(chained.size(), 2U);
  auto const empty = co_await redis.async_pipeline(pipeline());
  EXPECT_TRUE(empty.empty());
}

TEST_F(coroutine_shapes, pipeline_temporaries) { run(pipeline_temporaries(redis_)); }

asio::awaitable<void> transaction_temporaries(client& redis) {
  auto const got = co_await redis.async_transaction(
      transaction(command("SET", long_key, long_value), command("GET", long_key)));
  EXPECT_EQ((*got)[1]->as_string(), long_value);
  auto const limited = co_await redis.async_transaction(transaction(command("GET", long_key)),
                                                        {.budget = 5ms}, asio::use_awaitable);
  EXPECT_EQ((*limited)[0]->as_string(), long_value);
  auto const refused = co_await redis.async_transaction(transaction(command("SELECT", 1)));
  EXPECT_EQ(refused.error().code, errc::refused_command);
}

TEST_F(coroutine_shapes, transaction_temporaries) { run(transaction_temporaries(redis_)); }

asio::awaitable<void> scripts_keys_and_arguments(client& redis) {
  script const echo("return {KEYS[1], ARGV[1], ARGV[2]}");
  auto const got = co_await redis.async_eval(echo, keys(long_key), args(long_value, 42));
  EXPECT_EQ(got->as_array()[0].as_string(), redis.key(long_key));
  EXPECT_EQ(got->as_array()[1].as_string(), long_value);
  EXPECT_EQ(got->as_array()[2].as_string(), "42");
  auto const limited =
      co_await redis.async_eval(echo, keys(long_key + long_key), args(std::string(200, 'y'), true),
                                {.budget = 20ms}, asio::use_awaitable);
  EXPECT_EQ(limited->as_array()[1].as_string(), std::string(200, 'y'));
  auto const made_here = co_await redis.async_eval(script("return '" + long_value + "'"), keys(), args());
  EXPECT_EQ(made_here->as_string(), long_value);
}

TEST_F(coroutine_shapes, scripts_keys_and_arguments) { run(scripts_keys_and_arguments(redis_)); }

asio::awaitable<void> results_used_where_they_are_made(client& redis) {
  (void)co_await redis.async_call(command("SET", long_key, long_value));
  auto const text = decode<std::string>(co_await redis.async_call(command("GET", long_key)));
  EXPECT_EQ(*text, long_value);
  auto const maybe = decode<std::optional<std::string>>(
      co_await redis.async_call(command("GET", "no such key"), {.budget = 5ms}));
  EXPECT_FALSE(maybe->has_value());
  EXPECT_EQ((co_await redis.async_call(command("GET", long_key))).value().as_string(), long_value);
  if (auto const got = co_await redis.async_call(command("GET", long_key)); got) {
    EXPECT_EQ(got->as_string(), long_value);
  }
  bool thrown = false;
  try {
    (void)(co_await redis.async_call(command("NOSUCH", long_key))).value();
  } catch (call_error const& e) {
    thrown = e.why().server == server_errc::err;
  }
  EXPECT_TRUE(thrown);
  for (auto const& one :
       co_await redis.async_pipeline(pipeline(command("GET", long_key), command("GET", long_key)))) {
    EXPECT_EQ(one->as_string(), long_value);
  }
}

TEST_F(coroutine_shapes, results_used_where_they_are_made) { run(results_used_where_they_are_made(redis_)); }

asio::awaitable<void> cancellation_and_close(client& redis, redoubt::testing::world& world) {
  (void)co_await redis.async_call(command("PING"));
  asio::cancellation_signal stop;
  world.redis().pause();
  world.at(world.now() + 10ms, [&] { stop.emit(asio::cancellation_type::terminal); });
  auto const got = co_await redis.async_call(command("GET", long_key), {.budget = 5s},
                                             asio::bind_cancellation_slot(stop.slot(), asio::use_awaitable));
  EXPECT_EQ(got.error().code, errc::cancelled);
  world.redis().resume();
  auto const pending = co_await redis.async_pending();
  EXPECT_TRUE(pending.empty());
  co_await redis.async_close(50ms);
  co_await redis.async_close();
  auto const closed = co_await redis.async_call(command("GET", long_key));
  EXPECT_EQ(closed.error().code, errc::closed);
}

TEST_F(coroutine_shapes, cancellation_and_close) { run(cancellation_and_close(redis_, world_)); }

asio::awaitable<reply> returned_through_a_level(client& redis, std::string key) {
  co_return (co_await redis.async_call(command("GET", key), {.budget = 5ms})).value();
}

asio::awaitable<void> nested(client& redis) {
  (void)co_await redis.async_call(command("SET", long_key, long_value));
  EXPECT_EQ((co_await returned_through_a_level(redis, long_key)).as_string(), long_value);
  auto operation = redis.async_call(command("GET", long_key), {.budget = 5ms}, asio::deferred);
  auto const first = co_await operation(asio::use_awaitable);
  EXPECT_EQ(first->as_string(), long_value);
}

TEST_F(coroutine_shapes, nested) { run(nested(redis_)); }

}  // namespace
