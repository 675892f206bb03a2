// SPDX-License-Identifier: BSL-1.0
//
// What comes back from a real server: scripts, key prefixes, replies as C++ types.
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include <boost/asio/use_future.hpp>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

TEST(client_scripts, C116_survive_a_flush_of_the_script_cache) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  client redis(context.io(), patient(server));
  script const count("return redis.call('INCRBY', KEYS[1], ARGV[1])");
  for (int i = 1; i <= 20; ++i) {
    if (i % 4 == 1) admin.call({"SCRIPT", "FLUSH"});
    auto const got = redis.async_eval(count, keys("n"), args(2), {}, asio::use_future).get();
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(got->as_integer(), 2 * i) << "executed once each time";
  }
  auto const stats = admin.call({"INFO", "commandstats"});
  EXPECT_EQ(number_in(stats, "cmdstat_eval:calls="), 5U) << "the whole text once after each flush";
  EXPECT_EQ(number_in(stats, "cmdstat_evalsha:calls="), 20U);
}

TEST(client_scripts, C116_many_callers_at_a_time_after_a_flush) {
  real_redis server;
  running_context context(2);
  client redis(context.io(), patient(server));
  script const count("return redis.call('INCR', KEYS[1])");
  std::vector<std::future<result<reply>>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(redis.async_eval(count, keys("n"), args(), {}, asio::use_future));
  std::vector<bool> seen(201);
  for (auto& one : all) {
    auto const got = one.get();
    ASSERT_TRUE(got) << got.error();
    ASSERT_GE(got->as_integer(), 1);
    ASSERT_LE(got->as_integer(), 200);
    EXPECT_FALSE(seen[static_cast<std::size_t>(got->as_integer())]) << "the same answer to two callers";
    seen[static_cast<std::size_t>(got->as_integer())] = true;
  }
  EXPECT_EQ(call(redis, command("GET", "n"))->as_string(), "200");
}

TEST(client_prefix, reaches_scripts_and_nothing_that_the_client_cannot_know) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  auto options = patient(server);
  options.key_prefix = "shop:";
  client redis(context.io(), options);
  script const both("redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[2]) return KEYS");
  for (int round = 0; round < 2; ++round) {  // by EVAL, by EVALSHA
    auto const got = redis.async_eval(both, keys("a", "b"), args("1", "x"), {}, asio::use_future).get();
    auto const names = decode<std::vector<std::string>>(got);
    ASSERT_TRUE(names) << names.error();
    EXPECT_EQ(*names, (std::vector<std::string>{"shop:a", "shop:b"}));
  }
  EXPECT_EQ(admin.call({"MGET", "shop:a", "shop:b", "a", "b"}), "*4\r\n$1\r\n1\r\n$1\r\nx\r\n$-1\r\n$-1\r\n");
  EXPECT_TRUE(call(redis, command("SET", "plain", "as written")));
  EXPECT_TRUE(call(redis, command("SET", redis.key("named"), "with it")));
  auto const batch = redis.async_pipeline(pipeline(command("SET", "p", "1")), {}, asio::use_future).get();
  EXPECT_TRUE(batch[0]);
  auto const block =
      redis.async_transaction(transaction(command("SET", "t", "1")), {}, asio::use_future).get();
  EXPECT_TRUE(block);
  EXPECT_EQ(admin.call({"EXISTS", "plain", "shop:named", "p", "t"}), ":4\r\n");
  EXPECT_EQ(admin.call({"DBSIZE"}), ":6\r\n");
}

TEST(client_values, decode_into_the_types_that_they_are) {
  real_redis server;
  running_context context;
  client redis(context.io(), patient(server));
  auto const ask = [&](auto const&... words) { return call(redis, command(words...)); };

  EXPECT_TRUE(decode<bool>(ask("SET", "text", "hello")).value());
  EXPECT_EQ(decode<std::string>(ask("GET", "text")).value(), "hello");
  EXPECT_EQ(decode<std::optional<std::string>>(ask("GET", "text")).value(), "hello");
  EXPECT_EQ(decode<std::optional<std::string>>(ask("GET", "missing")).value(), std::nullopt);
  EXPECT_EQ(decode<std::string>(ask("GET", "missing")).error().code, errc::unexpected_reply);
  EXPECT_EQ(decode<std::string>(ask("PING")).value(), "PONG");

  EXPECT_EQ(decode<std::int64_t>(ask("INCRBY", "n", 41)).value(), 41);
  EXPECT_EQ(decode<int>(ask("INCR", "n")).value(), 42);
  EXPECT_EQ(decode<unsigned char>(ask("GET", "n")).value(), 42);
  EXPECT_EQ(decode<std::string>(ask("INCR", "n")).value(), "43");
  EXPECT_TRUE(ask("SET", "n", std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(decode<std::int64_t>(ask("GET", "n")).value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(decode<std::int32_t>(ask("INCR", "n")).error().code, errc::unexpected_reply) << "no wrap";
  EXPECT_EQ(decode<std::uint64_t>(ask("DECR", "text2")).error().code, errc::unexpected_reply)
      << "-1 is no unsigned";
  EXPECT_TRUE(decode<bool>(ask("EXISTS", "text")).value());
  EXPECT_FALSE(decode<bool>(ask("EXISTS", "missing")).value());

  EXPECT_DOUBLE_EQ(decode<double>(ask("INCRBYFLOAT", "f", "2.5")).value(), 2.5);
  EXPECT_EQ(decode<double>(ask("ZADD", "z", "INCR", "+inf", "far")).value(),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(ask("SET", "third", 1.0 / 3));
  EXPECT_EQ(decode<double>(ask("GET", "third")).value(), 1.0 / 3)
      << "written in the form that reads back the same";

  EXPECT_TRUE(ask("RPUSH", "list", "a", "", "c"));
  EXPECT_EQ(decode<std::vector<std::string>>(ask("LRANGE", "list", 0, -1)).value(),
            (std::vector<std::string>{"a", "", "c"}));
  EXPECT_TRUE(decode<std::vector<std::string>>(ask("LRANGE", "missing", 0, -1)).value().empty());
  auto const some = decode<std::vector<std::optional<std::string>>>(ask("MGET", "text", "missing", "list"));
  EXPECT_EQ(some.value(), (std::vector<std::optional<std::string>>{"hello", std::nullopt, std::nullopt}));

  EXPECT_TRUE(ask("HSET", "h", "one", 1, "two", 2));
  EXPECT_EQ((decode<std::map<std::string, int>>(ask("HGETALL", "h")).value()),
            (std::map<std::string, int>{{"one", 1}, {"two", 2}}));
  EXPECT_EQ((decode<std::unordered_map<std::string, std::string>>(ask("HGETALL", "h")).value().at("two")),
            "2");
  EXPECT_TRUE((decode<std::map<std::string, int>>(ask("HGETALL", "missing")).value().empty()));

  auto const scan = decode<std::pair<std::uint64_t, std::vector<std::string>>>(ask("HSCAN", "h", 0));
  EXPECT_EQ(scan.value().first, 0U);
  EXPECT_EQ(scan.value().second.size(), 4U);
  EXPECT_TRUE(decode<reply>(ask("COMMAND", "INFO", "get")).value().is_array());

  auto const wrong = decode<std::string>(ask("GET", "list"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().server, server_errc::wrongtype) << "a failure stays what it is";
}

TEST(client_values, errors_stand_inside_an_executed_transaction) {
  real_redis server;
  running_context context;
  client redis(context.io(), patient(server));
  auto const got = redis
                       .async_transaction(transaction(command("SET", "k", "text"), command("INCR", "k"),
                                                      command("GET", "k")),
                                          {}, asio::use_future)
                       .get();
  ASSERT_TRUE(got) << got.error();
  ASSERT_EQ(got->size(), 3U);
  EXPECT_TRUE((*got)[0]);
  ASSERT_FALSE((*got)[1]);
  EXPECT_EQ((*got)[1].error().server, server_errc::err);
  EXPECT_EQ((*got)[1].error().effect, effect::none);
  EXPECT_EQ((*got)[2]->as_string(), "text");
  auto const refused =
      redis
          .async_transaction(transaction(command("SET", "k", "new"), command("NOSUCH")), {}, asio::use_future)
          .get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().server, server_errc::err) << refused.error();
  EXPECT_EQ(refused.error().effect, effect::none);
  EXPECT_EQ(call(redis, command("GET", "k"))->as_string(), "text");
  auto const empty = redis.async_transaction(transaction(), {}, asio::use_future).get();
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
}

TEST(client_values, C63_a_large_value_within_the_bound_arrives_whole) {
  real_redis server;
  running_context context;
  auto options = patient(server);
  options.bounds.queued_bytes = std::size_t{64} << 20;
  client redis(context.io(), options);
  std::string large(std::size_t{32} << 20, '\0');
  for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i);
  ASSERT_TRUE(call(redis, command("SET", "large", large)));
  auto const got = call(redis, command("GET", "large"));
  ASSERT_TRUE(got) << got.error();
  EXPECT_TRUE(got->as_string() == large);

  auto strict_options = patient(server);
  strict_options.bounds.reply_bytes = std::size_t{8} << 20;
  client bounded(context.io(), strict_options);
  ASSERT_TRUE(call(bounded, command("SET", "small", "s")));
  auto const refused = call(bounded, command("GET", "large"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::reply_too_large) << refused.error();
  EXPECT_EQ(refused.error().effect, effect::unknown);
  EXPECT_EQ(call(bounded, command("GET", "small"))->as_string(), "s");
}

}  // namespace
