// SPDX-License-Identifier: BSL-1.0
//
// Commands as bytes, against what hiredis makes of the same arguments.
#include <redoubt/resp/command.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <redoubt/core/random.hpp>

namespace {

using namespace std::string_literals;
using redoubt::cannot_share_connection;
using redoubt::command;
using redoubt::pipeline;
using redoubt::transaction;
using words = std::vector<std::string>;

std::string as_hiredis(words const& arguments) {
  std::vector<char const*> text;
  std::vector<std::size_t> size;
  for (auto const& a : arguments) {
    text.push_back(a.data());
    size.push_back(a.size());
  }
  char* out = nullptr;
  auto const n = redisFormatCommandArgv(&out, static_cast<int>(arguments.size()), text.data(), size.data());
  EXPECT_GT(n, 0);
  std::string bytes(out, static_cast<std::size_t>(n));
  redisFreeCommand(out);
  return bytes;
}

command built(words const& arguments) {
  command c(arguments.at(0));
  for (std::size_t i = 1; i < arguments.size(); ++i) c.add(arguments[i]);
  return c;
}

void same(words const& arguments) {
  auto const c = built(arguments);
  ASSERT_EQ(c.wire(), as_hiredis(arguments));
  ASSERT_EQ(c.size(), arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) ASSERT_EQ(c[i], arguments[i]) << i;
  ASSERT_EQ(c[arguments.size()], "");
  ASSERT_EQ(c.name(), arguments[0]);
}

TEST(command, C72_is_byte_for_byte_what_hiredis_writes) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  same({"PING"});
  same({"SET", "k", "v"});
  same({"SET", every, every});
  same({"SET", "", ""});
  same({"", ""});
  same({"SET", "big", std::string(1 << 20, '\n')});
  same({"SET", "%s%n%x%d", "100%"});
  same({"SET", "a\r\nDEL b\r\n", "*1\r\n$8\r\nFLUSHALL\r\n"});
  same({"SET", "nul\0in the middle"s, "\0"s});
  for (int c = 0; c < 256; ++c) same({"GET", std::string(1, static_cast<char>(c))});
}

TEST(command, C72_of_any_number_and_size_of_arguments) {
  redoubt::random_source random(72);
  for (int round = 0; round < 300; ++round) {
    words arguments;
    for (auto n = 1 + random.below(20); n > 0; --n) {
      std::string text(random.below(random.chance(1, 10) ? 5000 : 20), '\0');
      for (auto& c : text) c = static_cast<char>(random.below(256));
      arguments.push_back(std::move(text));
    }
    same(arguments);
  }
  for (std::size_t n : {9u, 10u, 99u, 100u, 999u, 1000u, 12'345u}) same(words(n, "x"));
  for (std::size_t n : {9u, 10u, 99u, 100u, 999u, 1000u, 9999u, 10'000u})
    same({"SET", "k", std::string(n, 'x')});
}

TEST(command, constructor_and_add_give_the_same_bytes) {
  command const whole("SET", "key", "value", "PX", 60'000);
  command grown("SET");
  grown.add("key").add("value").add("PX").add(60'000);
  EXPECT_EQ(whole.wire(), grown.wire());
  EXPECT_EQ(whole.wire(), as_hiredis({"SET", "key", "value", "PX", "60000"}));
}

TEST(command, integers_are_decimal) {
  EXPECT_EQ(command("X", std::numeric_limits<std::int64_t>::min())[1], "-9223372036854775808");
  EXPECT_EQ(command("X", std::numeric_limits<std::int64_t>::max())[1], "9223372036854775807");
  EXPECT_EQ(command("X", std::numeric_limits<std::uint64_t>::max())[1], "18446744073709551615");
  EXPECT_EQ(command("X", std::int8_t{-5}, std::uint8_t{200}, std::int16_t{-300}, 0u)[1], "-5");
  EXPECT_EQ(command("X", std::int8_t{-5}, std::uint8_t{200})[2], "200");
  EXPECT_EQ(command("X", true)[1], "1");
  EXPECT_EQ(command("X", false)[1], "0");
}

TEST(command, floating_point_numbers_read_back_the_same) {
  redoubt::random_source random(5);
  auto const check = [](double d) {
    command const c("X", d);
    double back = 0;
    auto const r = std::from_chars(c[1].data(), c[1].data() + c[1].size(), back);
    ASSERT_EQ(r.ec, std::errc{});
    ASSERT_EQ(back, d) << c[1];
    ASSERT_EQ(c.wire(), as_hiredis({"X", std::string(c[1])}));
  };
  for (double d : {0.0, 1.0, -1.5, 0.1, 1e300, -1e-300, std::numeric_limits<double>::max(),
                   std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min(),
                   std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    check(d);
  }
  for (int i = 0; i < 2000; ++i) check(static_cast<double>(static_cast<std::int64_t>(random())) * 1e-7);
  EXPECT_EQ(command("X", 0.1)[1], "0.1") << "the shortest form";
  EXPECT_EQ(command("X", 0.1f)[1], "0.1");
}

TEST(command, takes_every_kind_of_text) {
  std::string const text = "text";
  std::string_view const view = text;
  char const* const pointer = "text";
  EXPECT_EQ(command("X", text).wire(), command("X", view).wire());
  EXPECT_EQ(command("X", text).wire(), command("X", pointer).wire());
  EXPECT_EQ(command("X", text).wire(), command("X", "text").wire());
}

TEST(command, can_be_copied_moved_and_given_away) {
  command a("SET", "k", "v");
  command const b = a;
  EXPECT_EQ(a.wire(), b.wire());
  a.add("NX");
  EXPECT_NE(a.wire(), b.wire());
  command c = std::move(a);
  EXPECT_EQ(c[3], "NX");
  auto const wire = std::string(c.wire());
  auto const [bytes, offset] = std::move(c).release();
  EXPECT_EQ(std::string_view(bytes).substr(offset), wire);
}

TEST(pipeline, is_its_commands_one_after_the_other) {
  pipeline p(command("GET", "a"), command("get", "b"));
  p.add(command("SET", "c", ""));
  EXPECT_EQ(p.wire(), as_hiredis({"GET", "a"}) + as_hiredis({"get", "b"}) + as_hiredis({"SET", "c", ""}));
  EXPECT_EQ(p.size(), 3u);
  EXPECT_EQ(p.label().view(), "GET");
  EXPECT_EQ(p.refused(), "");
  EXPECT_TRUE(pipeline().empty());
}

TEST(pipeline, C07_names_the_first_command_that_cannot_share_a_connection) {
  pipeline const p(command("GET", "a"), command("subscribe", "b"), command("MULTI"));
  EXPECT_EQ(p.refused(), "subscribe");
  EXPECT_EQ(transaction(command("WATCH", "a")).refused(), "WATCH");
}

TEST(cannot_share_connection, C07_whatever_changes_the_state_of_a_connection) {
  for (std::string_view name :
       {"MULTI",      "EXEC",       "DISCARD",     "WATCH",        "UNWATCH",      "SUBSCRIBE",
        "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR",
        "SELECT",     "HELLO",      "AUTH",        "QUIT",         "RESET",        "SYNC",
        "PSYNC",      "REPLCONF",   "READONLY",    "READWRITE",    "ASKING"}) {
    std::string lower(name);
    for (auto& c : lower) c = static_cast<char>(c - 'A' + 'a');
    auto mixed = lower;
    mixed[0] = name[0];
    for (auto const& written : {std::string(name), lower, mixed}) {
      EXPECT_TRUE(cannot_share_connection(command(written))) << written;
      EXPECT_TRUE(cannot_share_connection(command(written, "x", "y"))) << written;
      EXPECT_FALSE(cannot_share_connection(command(written + "X"))) << written;
      EXPECT_FALSE(cannot_share_connection(command("X" + written))) << written;
      EXPECT_FALSE(cannot_share_connection(command("GET", written))) << "a name is not an argument";
    }
  }
  EXPECT_TRUE(cannot_share_connection(command("")));
}

TEST(cannot_share_connection, C08_whatever_blocks_everybody_behind_it) {
  for (std::string_view name : {"BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX",
                                "BZMPOP", "WAIT", "WAITAOF", "blpop", "bzPopMin"}) {
    EXPECT_TRUE(cannot_share_connection(command(name, "missing", 0))) << name;
  }
  for (std::string_view name : {"LPOP", "RPOP", "LMOVE", "ZPOPMIN", "BITCOUNT", "BITPOS"}) {
    EXPECT_FALSE(cannot_share_connection(command(name, "k"))) << name;
  }
}

TEST(cannot_share_connection, subcommands_of_client) {
  for (std::string_view sub : {"REPLY", "reply", "TRACKING", "CACHING", "NO-TOUCH", "NO-EVICT", "SETNAME"}) {
    EXPECT_TRUE(cannot_share_connection(command("CLIENT", sub, "ON"))) << sub;
    EXPECT_TRUE(cannot_share_connection(command("client", sub, "ON"))) << sub;
  }
  for (std::string_view sub : {"LIST", "INFO", "ID", "GETNAME", "KILL", "PAUSE", "UNPAUSE"}) {
    EXPECT_FALSE(cannot_share_connection(command("CLIENT", sub))) << sub;
  }
  EXPECT_FALSE(cannot_share_connection(command("CLIENT")));
}

TEST(cannot_share_connection, C08_reading_streams_blocks_only_where_it_says_so) {
  auto const refused = [](words const& w) { return cannot_share_connection(built(w)); };
  EXPECT_TRUE(refused({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}));
  EXPECT_TRUE(refused({"xread", "count", "5", "block", "0", "streams", "s", "$"}));
  EXPECT_FALSE(refused({"XREAD", "COUNT", "5", "STREAMS", "s", "0"}));
  EXPECT_FALSE(refused({"XREAD", "STREAMS", "BLOCK", "0"})) << "a key may be called anything";
  EXPECT_TRUE(refused({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}));
  EXPECT_TRUE(
      refused({"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "NOACK", "BLOCK", "0", "STREAMS", "s", ">"}));
  EXPECT_TRUE(refused({"XREADGROUP", "BLOCK", "0", "GROUP", "g", "c", "STREAMS", "s", ">"}));
  EXPECT_FALSE(refused({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}));
  // Groups and consumers may be called anything, too.
  EXPECT_TRUE(refused({"XREADGROUP", "GROUP", "STREAMS", "c", "BLOCK", "0", "STREAMS", "s", ">"}));
  EXPECT_TRUE(refused({"XREADGROUP", "GROUP", "g", "streams", "BLOCK", "0", "STREAMS", "s", ">"}));
  EXPECT_FALSE(refused({"XREADGROUP", "GROUP", "g", "BLOCK", "STREAMS", "s", ">"}));
  EXPECT_FALSE(refused({"XREADGROUP", "GROUP", "BLOCK", "c", "STREAMS", "s", ">"}));
  EXPECT_FALSE(refused({"XREADGROUP"}));
  EXPECT_FALSE(refused({"XREADGROUP", "GROUP"}));
}

TEST(command, C72_an_argument_may_come_from_the_command_itself) {
  command c("SET", "key", std::string(200, 'v'));
  for (int i = 0; i < 5; ++i) c.add(c[2]).add(c.name());
  EXPECT_EQ(c.size(), 13u);
  EXPECT_EQ(c[11], std::string(200, 'v'));
  EXPECT_EQ(c[12], "SET");
}

TEST(command, is_empty_once_it_was_moved_from) {
  for (std::size_t const size : {std::size_t{1}, std::size_t{500}}) {
    command from("SET", "key", std::string(size, 'v'));
    command const to = std::move(from);
    EXPECT_EQ(to.size(), 3u);
    EXPECT_EQ(from.size(), 0u);  // NOLINT: what is left is the point
    EXPECT_EQ(from.wire(), "");
    EXPECT_EQ(from.name(), "");
    EXPECT_TRUE(cannot_share_connection(from));
    EXPECT_FALSE(redoubt::pipeline(from).refused().empty());
    from.add("GET").add("key");  // NOLINT: it begins anew
    EXPECT_EQ(from.wire(), command("GET", "key").wire());
  }
}

TEST(pipeline, is_empty_once_it_was_moved_from) {
  redoubt::pipeline from(command("GET", "a"), command("GET", "b"));
  auto const to = std::move(from);
  EXPECT_EQ(to.size(), 2u);
  EXPECT_TRUE(from.empty());  // NOLINT: what is left is the point
  EXPECT_EQ(from.wire(), "");
}

}  // namespace
