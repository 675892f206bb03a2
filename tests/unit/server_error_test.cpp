// SPDX-License-Identifier: BSL-1.0
//
// What the error lines of real servers are taken for: alone, and raised inside a script in the form of Redis
// 7 and in that of Redis 6.
#include <redoubt/resp/reply.hpp>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace {

using redoubt::effect;
using redoubt::failure_class;
using redoubt::parse_server_error;
using redoubt::server_errc;

struct line {
  std::string_view text;
  server_errc code;
  failure_class group;
};

// As Redis 7.0 writes them.
constexpr line lines[] = {
    {"READONLY You can't write against a read only replica.", server_errc::readonly,
     failure_class::write_refused},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     server_errc::masterdown, failure_class::unavailable},
    {"OOM command not allowed when used memory > 'maxmemory'.", server_errc::oom,
     failure_class::write_refused},
    {"NOREPLICAS Not enough good replicas to write.", server_errc::noreplicas, failure_class::write_refused},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     server_errc::misconf, failure_class::write_refused},
    {"LOADING Redis is loading the dataset in memory", server_errc::loading, failure_class::unavailable},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     server_errc::busy, failure_class::unavailable},
    {"CLUSTERDOWN Hash slot not served", server_errc::clusterdown, failure_class::write_refused},
    {"NOAUTH Authentication required.", server_errc::noauth, failure_class::misconfigured},
    {"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
     "<user> "
     "<pass> option can be used to authenticate the client and select the RESP protocol version at the same "
     "time",
     server_errc::noauth, failure_class::misconfigured},
    {"WRONGPASS invalid username-password pair or user is disabled.", server_errc::wrongpass,
     failure_class::misconfigured},
    {"NOPERM this user has no permissions to access one of the keys used as arguments", server_errc::noperm,
     failure_class::misconfigured},
    {"NOPERM this user has no permissions to run the 'eval' command", server_errc::noperm,
     failure_class::misconfigured},
    {"ERR max number of clients reached", server_errc::max_clients, failure_class::unavailable},
    {"ERR max number of clients + cluster connections reached", server_errc::max_clients,
     failure_class::unavailable},
    {"ERR AUTH <password> called without any password configured for the default user. Are you sure your "
     "configuration is correct?",
     server_errc::err, failure_class::caller_error},
    {"ERR invalid expire time in 'set' command", server_errc::err, failure_class::caller_error},
    {"ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.", server_errc::err, failure_class::caller_error},
    {"ERR Protocol error: invalid bulk length", server_errc::err, failure_class::caller_error},
    {"NOSCRIPT No matching script. Please use EVAL.", server_errc::noscript, failure_class::caller_error},
    {"NOPROTO unsupported protocol version", server_errc::noproto, failure_class::misconfigured},
    {"EXECABORT Transaction discarded because of previous errors.", server_errc::execabort,
     failure_class::caller_error},
    {"MOVED 8442 172.17.0.3:7002", server_errc::moved, failure_class::misconfigured},
    {"ASK 8442 172.17.0.3:7002", server_errc::ask, failure_class::misconfigured},
    {"CROSSSLOT Keys in request don't hash to the same slot", server_errc::crossslot,
     failure_class::caller_error},
    {"TRYAGAIN Multiple keys request during rehashing of slot", server_errc::tryagain,
     failure_class::unavailable},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", server_errc::wrongtype,
     failure_class::caller_error},
    {"UNKILLABLE Sorry the script already executed write commands against the dataset.",
     server_errc::unkillable, failure_class::caller_error},
    {"NOTBUSY No scripts in execution right now.", server_errc::notbusy, failure_class::caller_error},
    {"BUSYGROUP Consumer Group name already exists", server_errc::busygroup, failure_class::caller_error},
    {"NOGROUP No such key 'k' or consumer group 'g'", server_errc::nogroup, failure_class::caller_error},
    {"DENIED Redis is running in protected mode", server_errc::other, failure_class::caller_error},
    {"MODULEERR something", server_errc::other, failure_class::caller_error},
};

TEST(server_error, every_state_of_a_server_has_its_code_and_class) {
  for (auto const& l : lines) {
    auto const e = parse_server_error(l.text);
    EXPECT_EQ(e.code, l.code) << l.text;
    EXPECT_EQ(redoubt::classify(e.code), l.group) << l.text;
    EXPECT_EQ(e.effect, effect::none) << "refused before it ran: " << l.text;
    EXPECT_EQ(e.text, l.text);
  }
}

TEST(server_error, C56_a_script_of_redis_7_gives_the_same_code) {
  for (auto const& l : lines) {
    if (l.code == server_errc::max_clients) continue;
    auto const text =
        std::string(l.text) + " script: 8d1ddc8a3a9a2c2a4a1a3d5b3d1b1c9f2d1e0f00, on @user_script:1.";
    auto const e = parse_server_error(text);
    EXPECT_EQ(e.code, l.code) << text;
    EXPECT_EQ(e.effect, effect::unknown) << "what stood before the failing line was executed: " << text;
  }
}

TEST(server_error, C56_a_script_of_redis_6_gives_the_same_code) {
  for (auto const& l : lines) {
    if (l.code == server_errc::max_clients) continue;
    for (std::string_view place : {"@user_script:1: @user_script: 1: -", "@user_script:12: -"}) {
      auto const text = "ERR Error running script (call to f_8d1ddc8a3a9a2c2a4a1a3d5b3d1b1c9f2d1e0f00): " +
                        std::string(place) + std::string(l.text);
      auto const e = parse_server_error(text);
      EXPECT_EQ(e.code, l.code) << text;
      EXPECT_EQ(e.effect, effect::unknown) << text;
    }
  }
}

TEST(server_error, a_script_that_fails_by_itself_is_an_error_of_the_caller) {
  for (std::string_view text : {
           "ERR Error running script (call to f_8d1d): @user_script:1: user_script:1: attempt to index a nil "
           "value",
           "ERR Error running script (call to f_8d1d): @user_script:1: user_script:1: balance: -5",
           "ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: 8d1d, on "
           "@user_script:1.",
           "ERR Error compiling script (new function): user_script:1: '=' expected near 'x'",
       }) {
    auto const e = parse_server_error(text);
    EXPECT_EQ(e.code, server_errc::err) << text;
    EXPECT_EQ(redoubt::classify(e.code), failure_class::caller_error);
  }
}

TEST(server_error, C37_only_the_leading_word_decides) {
  for (std::string_view text : {
           "application NOPROTO diagnostic",
           "MYAPP READONLY mode",
           "LIMIT -OOM is not what this is",
           "oops LOADING",
           "readonly in lower case is nobody's word",
           "READONLYX",
           " READONLY with a space in front",
           "",
           " ",
       }) {
    EXPECT_EQ(parse_server_error(text).code, server_errc::other) << text;
  }
  EXPECT_EQ(parse_server_error("ERR application NOPROTO diagnostic").code, server_errc::err);
  EXPECT_EQ(parse_server_error("ERR READONLY").code, server_errc::err);
  EXPECT_EQ(parse_server_error("READONLY").code, server_errc::readonly) << "the word alone";
}

TEST(server_error, any_text_is_kept_as_it_is) {
  std::string text = "ERR a\0b\xff\x01";
  text.resize(8);
  EXPECT_EQ(parse_server_error(text).text, text);
}

TEST(server_error, every_code_has_a_name_and_a_class) {
  for (int i = 0; i <= static_cast<int>(server_errc::nogroup); ++i) {
    auto const code = static_cast<server_errc>(i);
    EXPECT_NE(to_string(code), "invalid") << i;
    EXPECT_FALSE(to_string(code).empty()) << i;
    EXPECT_NE(to_string(redoubt::classify(code)), "invalid") << i;
  }
}

}  // namespace
