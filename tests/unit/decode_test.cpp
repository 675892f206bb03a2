// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/decode.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

using redoubt::decode;
using redoubt::effect;
using redoubt::errc;
using redoubt::failure;
using redoubt::phase;
using redoubt::reply;
using redoubt::result;
using redoubt::server_errc;
using redoubt::status_line;

reply integer(std::int64_t n) { return reply(n); }
reply text(std::string s) { return reply(std::move(s)); }
reply status(std::string s) { return reply(status_line{std::move(s)}); }
reply error(std::string_view line) { return reply(redoubt::parse_server_error(line)); }
template <class... R>
reply list(R... r) {
  reply::array out;
  (out.push_back(std::move(r)), ...);
  return reply(std::move(out));
}

template <class T>
void gives(reply r, T const& wanted) {
  std::ostringstream what;
  what << r;
  auto const got = decode<T>(std::move(r));
  ASSERT_TRUE(got) << what.str();
  EXPECT_TRUE(*got == wanted) << what.str();
}

template <class T>
void refuses(reply r) {
  std::ostringstream what;
  what << r;
  bool const is_error = r.is_error();
  auto const got = decode<T>(std::move(r));
  ASSERT_FALSE(got) << what.str();
  EXPECT_EQ(got.error().code, is_error ? errc::server_error : errc::unexpected_reply) << what.str();
  EXPECT_EQ(got.error().phase, phase::done);
  EXPECT_EQ(got.error().attempts, 1);
  if (!is_error) {
    EXPECT_EQ(got.error().effect, effect::unknown) << "the command was executed";
    EXPECT_NE(got.error().detail->note.find("wanted"), std::string::npos);
  }
}

TEST(decode, reply_takes_anything) {
  for (auto const& r : {reply(), integer(1), text("x"), status("OK"), error("ERR x"), list(reply())}) {
    gives<reply>(r, r);
  }
}

TEST(decode, string) {
  gives<std::string>(text(""), "");
  gives<std::string>(text("a\r\nb"), "a\r\nb");
  gives<std::string>(status("OK"), "OK");
  gives<std::string>(integer(-5), "-5");
  refuses<std::string>(reply());
  refuses<std::string>(list());
  refuses<std::string>(error("ERR x"));
}

TEST(decode, integers_in_range) {
  gives<std::int64_t>(integer(std::numeric_limits<std::int64_t>::min()),
                      std::numeric_limits<std::int64_t>::min());
  gives<int>(integer(7), 7);
  gives<int>(text("-7"), -7);
  gives<std::uint64_t>(text("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  gives<std::uint8_t>(integer(255), std::uint8_t{255});
}

TEST(decode, integers_out_of_range_never_wrap) {
  refuses<std::uint8_t>(integer(256));
  refuses<std::uint8_t>(integer(-1));
  refuses<unsigned>(text("-1"));
  refuses<int>(integer(std::int64_t{1} << 40));
  refuses<std::int64_t>(text("9223372036854775808"));
  refuses<short>(text("32768"));
}

TEST(decode, integers_are_the_whole_text) {
  for (auto const* s : {"", " 1", "1 ", "1.0", "1e3", "+1", "0x10", "1\n", "one"}) refuses<int>(text(s));
  refuses<int>(reply());
  refuses<int>(status("1"));
  refuses<int>(list(integer(1)));
  refuses<int>(error("ERR x"));
}

TEST(decode, boolean) {
  gives<bool>(integer(1), true);
  gives<bool>(integer(0), false);
  gives<bool>(text("1"), true);
  gives<bool>(text("0"), false);
  gives<bool>(status("OK"), true);
  for (auto const& r : {reply(), integer(2), integer(-1), text(""), text("true"), status("QUEUED"), list()}) {
    refuses<bool>(r);
  }
  refuses<bool>(error("ERR x"));
}

TEST(decode, floating_point) {
  gives<double>(text("1.5"), 1.5);
  gives<double>(text("-0.0"), 0.0);
  gives<double>(text("1e300"), 1e300);
  gives<double>(text("inf"), std::numeric_limits<double>::infinity());
  gives<double>(text("-inf"), -std::numeric_limits<double>::infinity());
  gives<double>(integer(3), 3.0);
  for (auto const* s : {"", "x", "1.5x", " 1", "1,5", "1e999"}) refuses<double>(text(s));
  refuses<double>(reply());
}

TEST(decode, nil_is_a_failure_for_everything_but_an_optional) {
  gives<std::optional<std::string>>(reply(), std::nullopt);
  gives<std::optional<int>>(reply(), std::nullopt);
  gives<std::optional<int>>(integer(4), 4);
  gives<std::optional<std::string>>(text(""), std::string());
  refuses<std::optional<int>>(text("x"));
  refuses<std::optional<int>>(error("ERR x"));
  refuses<bool>(reply());
  refuses<std::vector<int>>(reply());
  refuses<std::pair<int, int>>(reply());
  refuses<std::map<std::string, int>>(reply());
}

TEST(decode, vector) {
  gives<std::vector<int>>(list(), {});
  gives<std::vector<int>>(list(integer(1), text("2")), {1, 2});
  gives<std::vector<std::optional<std::string>>>(list(text("a"), reply()), {"a", std::nullopt});
  gives<std::vector<std::vector<int>>>(list(list(integer(1)), list()), {{1}, {}});
  refuses<std::vector<int>>(list(integer(1), text("x")));
  refuses<std::vector<int>>(integer(1));
}

TEST(decode, pair) {
  gives<std::pair<std::string, int>>(list(text("a"), integer(1)), {"a", 1});
  refuses<std::pair<std::string, int>>(list(text("a")));
  refuses<std::pair<std::string, int>>(list(text("a"), integer(1), integer(2)));
  refuses<std::pair<std::string, int>>(list(text("a"), text("b")));
  refuses<std::pair<std::string, int>>(list(reply(), integer(1)));
}

TEST(decode, maps) {
  auto const good = list(text("a"), integer(1), text("b"), integer(2));
  gives<std::map<std::string, int>>(good, {{"a", 1}, {"b", 2}});
  gives<std::unordered_map<std::string, int>>(good, {{"a", 1}, {"b", 2}});
  gives<std::map<std::string, int>>(list(), {});
  gives<std::map<std::string, int>>(list(text("a"), integer(1), text("a"), integer(2)), {{"a", 2}});
  refuses<std::map<std::string, int>>(list(text("a")));
  refuses<std::map<std::string, int>>(list(text("a"), text("x")));
  refuses<std::map<std::string, int>>(list(reply(), integer(1)));
  refuses<std::map<std::string, int>>(integer(1));
}

TEST(decode, an_error_inside_an_array_is_that_error) {
  auto const got = decode<std::vector<int>>(list(integer(1), error("WRONGTYPE Operation against a key")));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::server_error);
  EXPECT_EQ(got.error().server, server_errc::wrongtype);
}

TEST(decode, a_failure_stays_what_it_is) {
  failure f;
  f.code = errc::deadline_exceeded;
  f.phase = phase::read;
  auto const got = decode<int>(result<reply>(f));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded);
  EXPECT_EQ(got.error().phase, phase::read);
  auto const value = decode<int>(result<reply>(integer(3)));
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 3);
}

TEST(decode, messages_name_both_types_and_no_content) {
  auto const got = decode<int>(text("S3cr3t-pw"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().detail->note, "wanted an integer of the asked size, got a string");
  EXPECT_EQ(got.error().message().find("S3cr3t"), std::string::npos);
}

TEST(to_failure, carries_the_servers_text_escaped_and_cut) {
  auto const f = redoubt::to_failure(redoubt::parse_server_error("ERR a\x01" + std::string(1000, 'b')));
  EXPECT_EQ(f.code, errc::server_error);
  EXPECT_EQ(f.server, server_errc::err);
  EXPECT_TRUE(f.detail->server_text.starts_with("ERR a\\x01bbb"));
  EXPECT_LT(f.detail->server_text.size(), 300u);
}

TEST(to_failure, C73_leaves_out_the_arguments_that_redis_echoes) {
  for (auto const* line :
       {"ERR unknown command 'FOO', with args beginning with: 'user:42:mail' 'payload' ",
        "ERR unknown command `FOO`, with args beginning with: `user:42:mail`, `payload`, "}) {
    auto const f = redoubt::to_failure(redoubt::parse_server_error(line));
    EXPECT_EQ(f.message().find("user:42"), std::string::npos) << f.message();
    EXPECT_EQ(f.message().find("payload"), std::string::npos) << f.message();
    EXPECT_NE(f.message().find("unknown command"), std::string::npos) << f.message();
  }
}

TEST(to_failure, C73_leaves_out_what_redis_repeats_in_quotation_marks) {
  for (auto const* line :
       {"ERR Error in ACL SETUSER modifier 'S3cr3t': Syntax error",
        "ERR Unknown option or number of arguments for CONFIG SET - 'S3cr3t'",
        "ERR unknown subcommand 'S3cr3t'. Try CLIENT HELP.",
        "ERR CONFIG SET failed (possibly related to argument 'S3cr3t') - can't set",
        "ERR Error compiling script (new function): user_script:1: '=' expected near 'S3cr3t' ",
        "ERR it's `a`S3cr3t`", "ERR 'S3cr3t", "ERR \"S3cr3t\"", "ERR unknown command 'S3cr3t'"}) {
    auto const f = redoubt::to_failure(redoubt::parse_server_error(line));
    EXPECT_EQ(f.message().find("S3cr3t"), std::string::npos) << f.message();
    EXPECT_NE(f.message().find("'...'"), std::string::npos) << f.message();
  }
  for (auto const* line : {"READONLY You can't write against a read only replica.",
                           "OOM command not allowed when used memory > 'maxmemory'.",
                           "ERR invalid expire time in 'set' command", "NOSCRIPT No matching script."}) {
    auto const f = redoubt::to_failure(redoubt::parse_server_error(line));
    EXPECT_EQ(f.detail->server_text, line) << "nothing of ours stands there";
  }
}

TEST(reply, prints_in_the_manner_of_redis_cli) {
  std::ostringstream out;
  out << list(integer(1), text("a"), reply(), status("OK"), error("ERR x"), list());
  EXPECT_EQ(out.str(), "[(integer) 1, \"a\", (nil), OK, (error) ERR x, []]");
}

TEST(reply, becomes_a_string_whatever_it_was) {
  for (auto was : {reply(), integer(7), text("a longer text than fits into the object"),
                   reply(redoubt::status_line{"OK"}), reply(redoubt::parse_server_error("OOM x script: y")),
                   reply(reply::array{integer(1)})}) {
    was.set_string("x");
    EXPECT_EQ(was, text("x"));
  }
}

TEST(reply, wrong_access_gives_nothing_rather_than_harm) {
  EXPECT_EQ(text("x").as_integer(), 0);
  EXPECT_EQ(integer(1).as_string(), "");
  EXPECT_TRUE(integer(1).as_array().empty());
  EXPECT_EQ(integer(1).take_string(), "");
  EXPECT_TRUE(integer(1).take_array().empty());
  EXPECT_EQ(integer(1).as_error(),
            (redoubt::server_error{redoubt::server_errc::none, redoubt::effect::none, {}}));
}

}  // namespace
