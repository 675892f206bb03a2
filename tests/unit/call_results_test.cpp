// SPDX-License-Identifier: BSL-1.0
//
// Scripts, pipelines and transactions: what becomes of the replies, and what is sent once more.
#include <redoubt/client.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "stub_connection.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::client_options;
using redoubt::command;
using redoubt::effect;
using redoubt::errc;
using redoubt::failure;
using redoubt::phase;
using redoubt::pipeline;
using redoubt::reply;
using redoubt::server_errc;
using redoubt::transaction;
using rig = test::client_rig;

reply ok() { return reply(redoubt::status_line{"OK"}); }
reply queued() { return reply(redoubt::status_line{"QUEUED"}); }
reply integer(std::int64_t n) { return reply(n); }
reply error(std::string_view line) { return reply(redoubt::parse_server_error(line)); }

failure ended(errc code, effect e, phase p) {
  failure f;
  f.code = code;
  f.effect = e;
  f.phase = p;
  return f;
}

// --- scripts ---

TEST(call_results, C34_eval_is_sent_only_after_an_explicit_noscript) {
  redoubt::script const s("return 1");
  struct fault {
    std::optional<failure> why;
    std::string_view line;
  };
  fault const faults[] = {
      {ended(errc::deadline_exceeded, effect::unknown, phase::read), {}},
      {ended(errc::connection_lost, effect::unknown, phase::read), {}},
      {ended(errc::protocol_error, effect::unknown, phase::read), {}},
      {ended(errc::connection_refused, effect::none, phase::connect), {}},
      {ended(errc::cancelled, effect::none, phase::queue), {}},
      {ended(errc::queue_full, effect::none, phase::queue), {}},
      {std::nullopt, "ERR unknown command 'EVALSHA'"},
      {std::nullopt, "READONLY You can't write against a read only replica."},
      {std::nullopt, "OOM command not allowed when used memory > 'maxmemory'."},
      {std::nullopt, "application NOSCRIPT diagnostic"},
      {std::nullopt, "NOSCRIPT says a script that did run"},
      {std::nullopt, "NOSCRIPT No matching script. Please use EVAL. script: 8d1d, on @user_script:1."},
      {std::nullopt,
       "ERR Error running script (call to f_8d1d): @user_script:1: -NOSCRIPT No matching script."},
      {std::nullopt, "NOPERM this user has no permissions to run the 'evalsha' command"},
  };
  for (auto const& f : faults) {
    rig r;
    auto const t = r.eval(s);
    ASSERT_EQ(r.to().seen.size(), 1u);
    EXPECT_EQ(r.to().seen[0].wire, command("EVALSHA", s.sha1(), 1, "k", "a").wire());
    if (f.why) {
      r.to().end({}, f.why);
    } else {
      r.to().end({error(f.line)});
    }
    r.run();
    ASSERT_EQ(t->ends, 1) << f.line;
    EXPECT_EQ(r.to().seen.size(), 1u) << "sent again after: " << t->why();
  }
}

TEST(call_results, C34_after_noscript_the_body_is_sent_once_under_the_same_deadline) {
  redoubt::script const s("return 1");
  client_options o;
  o.key_prefix = "shop:";
  rig r(o);
  auto const t = r.eval(s, {.budget = 500ms});
  r.to().end({error("NOSCRIPT No matching script. Please use EVAL.")});
  r.run();
  EXPECT_EQ(t->ends, 0);
  ASSERT_EQ(r.to().seen.size(), 2u);
  EXPECT_EQ(r.to().seen[0].wire, command("EVALSHA", s.sha1(), 1, "shop:k", "a").wire());
  EXPECT_EQ(r.to().seen[1].wire, command("EVAL", s.body(), 1, "shop:k", "a").wire());
  EXPECT_EQ(r.to().seen[1].by, r.to().seen[0].by);
  EXPECT_EQ(r.to().seen[1].started, r.to().seen[0].started) << "elapsed counts from the first";
  EXPECT_TRUE(r.to().seen[1].own_budget);
  EXPECT_EQ(r.c->snapshot().in_flight, 1u);
  r.to().end({integer(1)});
  r.run();
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ((*t->value)->as_integer(), 1);
  EXPECT_EQ(r.c->snapshot().in_flight, 0u);
  EXPECT_EQ(r.c->snapshot().queued_bytes, 0u);
}

TEST(call_results, C34_a_second_noscript_is_the_answer) {
  redoubt::script const s("return 1");
  rig r;
  auto const t = r.eval(s);
  for (int i = 0; i < 2; ++i) {
    r.to().end({error("NOSCRIPT No matching script. Please use EVAL.")});
    r.run();
  }
  ASSERT_EQ(t->ends, 1);
  EXPECT_EQ(t->why().server, server_errc::noscript);
  EXPECT_EQ(r.to().seen.size(), 2u);
}

// --- pipelines ---

TEST(call_results, a_pipeline_gives_one_result_per_command) {
  rig r;
  auto const t = r.send(pipeline(command("GET", "a"), command("LPUSH", "b", 1), command("GET", "c")));
  EXPECT_EQ(r.to().seen[0].replies, 3u);
  r.to().end({integer(1), error("WRONGTYPE Operation against a key"), integer(3)});
  r.run();
  auto const& all = *t->value;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]->as_integer(), 1);
  EXPECT_EQ(all[1].error().server, server_errc::wrongtype);
  EXPECT_EQ(all[1].error().effect, effect::none);
  EXPECT_EQ(all[2]->as_integer(), 3);
}

TEST(call_results, what_was_answered_of_a_pipeline_stays_when_the_rest_fails) {
  rig r;
  auto const t = r.send(pipeline(command("GET", "a"), command("GET", "b"), command("GET", "c")));
  r.to().end({integer(1)}, ended(errc::connection_lost, effect::unknown, phase::read));
  r.run();
  auto const& all = *t->value;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]->as_integer(), 1);
  EXPECT_EQ(all[1].error().code, errc::connection_lost);
  EXPECT_EQ(all[2].error().effect, effect::unknown);
}

TEST(call_results, small_pipelines) {
  rig r;
  auto const none = r.send(pipeline());
  auto const single = r.send(pipeline(command("GET", "a")));
  r.run();
  ASSERT_EQ(none->ends, 1);
  EXPECT_TRUE(none->value->empty());
  r.to().end({error("OOM command not allowed")});
  r.run();
  ASSERT_EQ(single->value->size(), 1u);
  EXPECT_EQ((*single->value)[0].error().server, server_errc::oom) << "C56: the same class as alone";
}

TEST(call_results, C37_an_error_of_a_script_in_a_pipeline_may_have_had_an_effect) {
  rig r;
  auto const t = r.send(pipeline(command("GET", "a"), command("EVAL", "x", 0)));
  r.to().end({integer(1), error("MYAPP limit reached")});
  r.run();
  EXPECT_EQ((*t->value)[1].error().effect, effect::unknown);
}

// --- transactions ---

TEST(call_results, C07_a_transaction_is_one_piece_on_the_wire) {
  rig r;
  auto const t = r.send(transaction(command("SET", "a", 1), command("INCR", "b")));
  std::string wanted;
  for (auto const& c : {command("MULTI"), command("SET", "a", 1), command("INCR", "b"), command("EXEC")})
    wanted += c.wire();
  EXPECT_EQ(r.to().seen[0].wire, wanted);
  EXPECT_EQ(r.to().seen[0].replies, 4u);
  r.to().end(
      {ok(), queued(), queued(), reply(reply::array{ok(), error("WRONGTYPE Operation against a key")})});
  r.run();
  auto const& all = **t->value;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->as_string(), "OK");
  EXPECT_EQ(all[1].error().server, server_errc::wrongtype);
}

TEST(call_results, C56_a_block_with_a_refused_command_fails_for_that_reason_and_without_effect) {
  rig r;
  auto const t = r.send(transaction(command("SET", "a", 1), command("SET", "b", 1)));
  r.to().end({ok(), queued(), error("OOM command not allowed when used memory > 'maxmemory'."),
              error("EXECABORT Transaction discarded because of previous errors.")});
  r.run();
  ASSERT_FALSE(*t->value);
  EXPECT_EQ(t->why().server, server_errc::oom);
  EXPECT_EQ(t->why().effect, effect::none);
}

TEST(call_results, a_block_whose_beginning_was_refused_may_have_run_piece_by_piece) {
  rig r;
  auto const t = r.send(transaction(command("SET", "a", 1)));
  r.to().end({error("NOPERM this user has no permissions to run the 'multi' command"), ok(),
              error("ERR EXEC without MULTI")});
  r.run();
  EXPECT_EQ(t->why().server, server_errc::noperm);
  EXPECT_EQ(t->why().effect, effect::unknown);
}

TEST(call_results, strange_ends_of_a_block) {
  rig r;
  auto const none = r.send(transaction());
  r.run();
  EXPECT_TRUE((*none->value)->empty());
  auto const nil = r.send(transaction(command("SET", "a", 1)));
  r.to().end({ok(), queued(), reply()});
  r.run();
  EXPECT_EQ(nil->why().code, errc::unexpected_reply);
  auto const lost = r.send(transaction(command("SET", "a", 1)));
  r.to().end({ok(), queued()}, ended(errc::connection_lost, effect::unknown, phase::read));
  r.run();
  EXPECT_EQ(lost->why().code, errc::connection_lost);
  EXPECT_EQ(lost->why().effect, effect::unknown);
}

// --- what was moved from ---

TEST(call_results, C60_what_was_moved_from_is_refused_and_waits_for_no_reply) {
  rig r;
  command c("GET", "a");
  pipeline p(command("GET", "a"), command("GET", "b"));
  transaction b(command("GET", "a"));
  (void)command(std::move(c));
  (void)pipeline(std::move(p));
  (void)transaction(std::move(b));
  auto const single = r.call(std::move(c));  // NOLINT: the mistake
  auto const batch = r.send(std::move(p));   // NOLINT
  auto const block = r.send(std::move(b));   // NOLINT
  r.run();
  EXPECT_TRUE(r.to().seen.empty());
  EXPECT_EQ(single->why().code, errc::refused_command);
  EXPECT_EQ(single->why().effect, effect::none);
  EXPECT_TRUE(batch->value->empty());
  EXPECT_TRUE((*block->value)->empty());
  EXPECT_EQ(r.c->snapshot().in_flight, 0u);
}

}  // namespace
