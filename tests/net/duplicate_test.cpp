// SPDX-License-Identifier: BSL-1.0
//
// Nothing is sent twice, whatever goes wrong after the server has executed it.
#include <future>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

TEST(sent_once, C31_an_executed_command_whose_reply_is_cut_off_is_not_repeated) {
  for (bool const with_reset : {false, true}) {
    scripted_server server([with_reset](peer& p) {
      while (auto const command = p.read()) {
        if (is(*command, "INCR")) return with_reset ? p.reset() : p.close();
        if (!p.answer(*command)) return;
      }
    });
    running_context context;
    client redis(context.io(), patient(towards(server)));
    auto const got = call(redis, command("INCR", "c"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::connection_lost) << got.error();
    EXPECT_EQ(got.error().effect, effect::unknown);
    EXPECT_EQ(got.error().phase, phase::read);
    EXPECT_EQ(got.error().attempts, 1);
    EXPECT_EQ(got.error().group(), failure_class::unavailable);
    EXPECT_TRUE(call(redis, command("GET", "c")));
    EXPECT_EQ(server.count("INCR"), 1U);
  }
}

TEST(sent_once, C31_also_when_the_reply_was_cut_in_the_middle) {
  scripted_server server([](peer& p) {
    while (auto const command = p.read()) {
      if (is(*command, "GET", "long")) {
        (void)p.read();
        return (void)p.send("$100\r\nonly the beg");
      }
      if (!p.answer(*command)) return;
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  auto const got =
      redis
          .async_pipeline(pipeline(command("INCR", "c"), command("GET", "long"), command("INCR", "c")), {},
                          asio::use_future)
          .get();
  ASSERT_EQ(got.size(), 3U);
  ASSERT_TRUE(got[0]);
  EXPECT_EQ(got[0]->as_integer(), 1);
  for (int i : {1, 2}) {
    ASSERT_FALSE(got[static_cast<std::size_t>(i)]);
    EXPECT_EQ(got[static_cast<std::size_t>(i)].error().code, errc::connection_lost);
    EXPECT_EQ(got[static_cast<std::size_t>(i)].error().effect, effect::unknown);
  }
  EXPECT_EQ(server.count("INCR"), 2U) << "the whole pipeline was written, once";
}

/// A server that executes a script by EVALSHA and then misbehaves.
struct script_server {
  enum class fault { silence, end, malformed, unknown_script };
  explicit script_server(fault what)
      : server([this, what](peer& p) {
          while (auto const command = p.read()) {
            if (is(*command, "EVALSHA")) {
              if (what == fault::unknown_script) {
                if (!p.send("-NOSCRIPT No matching script. Please use EVAL.\r\n")) return;
                continue;
              }
              ++executions;
              if (what == fault::silence) return (void)p.wait_closed();
              if (what == fault::malformed) (void)p.send("garbage\r\n");
              return;
            }
            if (is(*command, "EVAL")) {
              if (!p.send(integer(++executions))) return;
            } else if (!p.answer(*command)) {
              return;
            }
          }
        }) {}
  std::atomic<int> executions = 0;
  scripted_server server;
};

result<reply> evaluate(client& redis, call_options options = {}) {
  static script const body("return redis.call('INCR', KEYS[1])");
  return redis.async_eval(body, keys("k"), args(1, "two"), options, asio::use_future).get();
}

TEST(sent_once, C34_a_script_whose_reply_is_late_is_not_repeated) {
  script_server s(script_server::fault::silence);
  running_context context;
  client redis(context.io(), towards(s.server));
  auto const got = evaluate(redis, {.budget = 100ms});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().effect, effect::unknown);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(s.executions, 1);
  EXPECT_EQ(s.server.count("EVAL"), 0U);
}

TEST(sent_once, C34_a_script_whose_connection_ends_is_not_repeated) {
  script_server s(script_server::fault::end);
  running_context context;
  client redis(context.io(), patient(towards(s.server)));
  auto const got = evaluate(redis);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connection_lost) << got.error();
  EXPECT_EQ(got.error().effect, effect::unknown);
  EXPECT_TRUE(call(redis, command("PING")));
  EXPECT_EQ(s.executions, 1);
  EXPECT_EQ(s.server.count("EVAL"), 0U);
}

TEST(sent_once, C34_a_script_with_a_malformed_reply_is_not_repeated) {
  script_server s(script_server::fault::malformed);
  running_context context;
  client redis(context.io(), patient(towards(s.server)));
  auto const got = evaluate(redis);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::protocol_error) << got.error();
  EXPECT_EQ(got.error().effect, effect::unknown);
  EXPECT_TRUE(call(redis, command("PING")));
  EXPECT_EQ(s.executions, 1);
  EXPECT_EQ(s.server.count("EVAL"), 0U);
}

TEST(sent_once, C34_a_script_towards_a_refused_port_is_not_executed) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  running_context context;
  client redis(context.io(), towards(server));
  auto const got = evaluate(redis);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
}

TEST(sent_once, C34_a_script_that_the_server_does_not_know_is_sent_whole_under_the_same_deadline) {
  script_server s(script_server::fault::unknown_script);
  running_context context;
  auto options = patient(towards(s.server));
  options.key_prefix = "shop:";
  client redis(context.io(), options);
  auto const got = evaluate(redis);
  ASSERT_TRUE(got) << got.error();
  EXPECT_EQ(got->as_integer(), 1);
  EXPECT_EQ(s.executions, 1);
  EXPECT_EQ(s.server.count("EVALSHA"), 1U);
  EXPECT_EQ(s.server.count("EVAL", "return redis.call('INCR', KEYS[1])", "1", "shop:k", "1", "two"), 1U);
}

TEST(sent_once, C34_the_second_half_of_a_script_call_has_no_deadline_of_its_own) {
  scripted_server server([](peer& p) {
    while (auto const command = p.read()) {
      if (is(*command, "EVALSHA")) {
        if (!p.wait(150ms) || !p.send("-NOSCRIPT No matching script. Please use EVAL.\r\n")) return;
      } else if (is(*command, "EVAL")) {
        return (void)p.wait_closed();
      } else if (!p.answer(*command)) {
        return;
      }
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  auto const start = steady::now();
  auto const got = evaluate(redis, {.budget = 250ms});
  auto const took = steady::now() - start;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().effect, effect::unknown);
  EXPECT_GE(took, 250ms);
  EXPECT_LT(took, 250ms + slack);
}

TEST(sent_once, C34_a_server_that_never_knows_the_script_is_asked_twice_and_no_more) {
  scripted_server server([](peer& p) {
    while (auto const command = p.read()) {
      bool const runs = is(*command, "EVALSHA") || is(*command, "EVAL");
      if (!(runs ? p.send("-NOSCRIPT No matching script. Please use EVAL.\r\n") : p.answer(*command))) return;
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  auto const got = evaluate(redis);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().server, server_errc::noscript) << got.error();
  EXPECT_EQ(server.count("EVALSHA"), 1U);
  EXPECT_EQ(server.count("EVAL"), 1U);
}

TEST(sent_once, C37_nothing_but_the_leading_word_of_an_error_decides) {
  std::string const lines[] = {"-application NOPROTO diagnostic", "-ERR NOSCRIPT is what they said",
                               "-MYNOSCRIPT No matching script. Please use EVAL.",
                               "-noscript No matching script"};
  for (auto const& line : lines) {
    scripted_server server([&line](peer& p) {
      while (auto const command = p.read()) {
        if (!(is(*command, "EVALSHA") ? p.send(line + "\r\n") : p.answer(*command))) return;
      }
    });
    running_context context;
    client redis(context.io(), patient(towards(server)));
    auto const got = evaluate(redis);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::server_error) << got.error();
    EXPECT_EQ(got.error().detail->server_text, line.substr(1)) << "passed through unchanged";
    EXPECT_EQ(server.count("EVALSHA"), 1U);
    EXPECT_EQ(server.count("EVAL"), 0U);
    EXPECT_EQ(server.count("HELLO"), 0U);
    EXPECT_EQ(server.accepted(), 1U);
  }
}

}  // namespace
