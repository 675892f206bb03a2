// SPDX-License-Identifier: BSL-1.0
//
// The client against a real server in every state that refuses something: the class, the group and the effect
// are right in every form of call, and the client recovers by itself when the state ends.
#include <filesystem>

#include <boost/asio/use_future.hpp>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

void expect_healthy(client& redis) {
  EXPECT_TRUE(eventually([&] { return call(redis, command("SET", "healthy", "yes")).has_value(); }));
  auto const got = call(redis, command("GET", "healthy"));
  ASSERT_TRUE(got) << got.error();
  EXPECT_EQ(got->as_string(), "yes");
}

TEST(client_states, C56_memory_full) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  client redis(context.io(), patient(server));
  admin.call({"SET", "filler", std::string(1 << 20, 'x')});
  admin.call({"CONFIG", "SET", "maxmemory", "1mb"});
  expect_in_every_form(redis, {server_errc::oom, failure_class::write_refused});
  EXPECT_TRUE(call(redis, command("DEL", "k")));
  admin.call({"CONFIG", "SET", "maxmemory", "0"});
  expect_healthy(redis);
  EXPECT_EQ(redis.snapshot().attempts, 1U) << "the connection was kept all the time";
}

TEST(client_states, C56_too_few_replicas) {
  real_redis server({"--min-replicas-to-write", "1"});
  raw_redis admin(server.port());
  running_context context;
  client redis(context.io(), patient(server));
  expect_in_every_form(redis, {server_errc::noreplicas, failure_class::write_refused});
  admin.call({"CONFIG", "SET", "min-replicas-to-write", "0"});
  expect_healthy(redis);
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(client_states, C56_snapshots_fail) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  client before(context.io(), patient(server));
  ASSERT_TRUE(call(before, command("PING")));
  admin.call({"CONFIG", "SET", "save", "900 1"});
  std::filesystem::create_directory(server.dir() / "dump.rdb");  // a snapshot cannot replace a folder
  admin.call({"BGSAVE"});
  ASSERT_TRUE(eventually([&] {
    return admin.call({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") != std::string::npos;
  }));
  refusal const misconf{server_errc::misconf, failure_class::write_refused};
  expect_in_every_form(before, misconf);
  // PING is refused as well in this state, and that must not keep a new client from reading.
  client after(context.io(), patient(server));
  expect_in_every_form(after, misconf);
  std::filesystem::remove(server.dir() / "dump.rdb");
  admin.call({"CONFIG", "SET", "save", ""});
  expect_healthy(before);
  expect_healthy(after);
  EXPECT_EQ(after.snapshot().attempts, 1U);
}

TEST(client_states, C53_cluster_without_slots) {
  real_redis server({"--cluster-enabled", "yes"});
  running_context context;
  client redis(context.io(), patient(server));
  EXPECT_TRUE(call(redis, command("PING"))) << "PING sees nothing of it";
  expect_in_every_form(redis, {server_errc::clusterdown, failure_class::write_refused, effect::unknown,
                               /* refuses_reads = */ true});
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(client_states, C56_read_only_replica) {
  real_redis primary({"--repl-diskless-sync-delay", "0"});
  real_redis server;
  raw_redis admin(server.port());
  admin.call({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())});
  ASSERT_TRUE(eventually([&] {
    return admin.call({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }));
  running_context context;
  client redis(context.io(), patient(server));
  expect_in_every_form(redis, {server_errc::readonly, failure_class::write_refused});
  admin.call({"REPLICAOF", "NO", "ONE"});
  expect_healthy(redis);
}

TEST(client_states, C56_replica_that_has_lost_its_primary) {
  real_redis server({"--replica-serve-stale-data", "no"});
  raw_redis admin(server.port());
  admin.call({"REPLICAOF", "127.0.0.1", "1"});
  running_context context;
  client redis(context.io(), patient(server));
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  expect_refused(got.error(), {server_errc::masterdown, failure_class::unavailable}, effect::none);
  auto const set = call(redis, command("SET", "k", "v"));
  ASSERT_FALSE(set);
  expect_refused(set.error(), {server_errc::readonly, failure_class::write_refused}, effect::none);
  static script const writing("return redis.call('SET', KEYS[1], ARGV[1])");
  auto const evaluated = redis.async_eval(writing, keys("k"), args("v"), {}, asio::use_future).get();
  ASSERT_FALSE(evaluated);
  expect_refused(evaluated.error(), {server_errc::masterdown, failure_class::unavailable}, effect::unknown);
  auto const block = redis.async_transaction(transaction(command("GET", "k")), {}, asio::use_future).get();
  ASSERT_FALSE(block);
  expect_refused(block.error(), {server_errc::masterdown, failure_class::unavailable}, effect::none);
  admin.call({"REPLICAOF", "NO", "ONE"});
  expect_healthy(redis);
}

TEST(client_states, C52_loading) {
  real_redis server({"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024",
                     "--rdbcompression", "no"});
  raw_redis admin(server.port());
  raw_redis loader(server.port());
  admin.call({"DEBUG", "POPULATE", "2000", "key", "100"});
  running_context context;
  client before(context.io(), patient(server));
  ASSERT_TRUE(call(before, command("PING")));
  loader.send(encode({"DEBUG", "RELOAD"}));
  ASSERT_TRUE(eventually([&] { return admin.call({"PING"}).starts_with("-LOADING"); }));
  refusal const loading{server_errc::loading, failure_class::unavailable, effect::none, true};
  expect_in_every_form(before, loading);
  client after(context.io(), patient(server));  // greets a server that is loading
  expect_in_every_form(after, loading);
  ASSERT_TRUE(admin.call({"PING"}).starts_with("-LOADING"))
      << "the state ended too early for this test to say anything";
  expect_healthy(before);
  expect_healthy(after);
  EXPECT_EQ(before.snapshot().attempts, 1U) << "no reconnecting while it loads";
  EXPECT_EQ(after.snapshot().attempts, 1U);
}

TEST(client_states, C56_script_running) {
  real_redis server({"--busy-reply-threshold", "10"});
  raw_redis admin(server.port());
  raw_redis blocker(server.port());
  running_context context;
  client before(context.io(), patient(server));
  ASSERT_TRUE(call(before, command("PING")));
  blocker.send(encode({"EVAL", "while true do end", "0"}));
  ASSERT_TRUE(eventually([&] { return admin.call({"PING"}).starts_with("-BUSY"); }));
  refusal const busy{server_errc::busy, failure_class::unavailable, effect::none, true};
  expect_in_every_form(before, busy);
  client after(context.io(), patient(server));
  expect_in_every_form(after, busy);
  EXPECT_TRUE(call(before, command("SCRIPT", "KILL")));
  expect_healthy(before);
  expect_healthy(after);
  EXPECT_EQ(before.snapshot().attempts, 1U);
}

TEST(client_states, C57_writes_paused) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  auto options = patient(server);
  options.timeouts = {};
  options.reconnect.stall_limit = 30s;
  client redis(context.io(), options);
  ASSERT_TRUE(call(redis, command("SET", "k", "old"), {.budget = 20s}));
  admin.call({"CLIENT", "PAUSE", "1200", "WRITE"});
  auto const start = steady::now();
  auto const got = call(redis, command("SET", "k", "late"), {.budget = 200ms});
  auto const took = steady::now() - start;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().phase, phase::read);
  EXPECT_EQ(got.error().effect, effect::unknown);
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 200ms + slack);
  EXPECT_EQ(admin.call({"GET", "k"}), "$3\r\nold\r\n");
  auto const later = call(redis, command("GET", "k"), {.budget = 20s});
  ASSERT_TRUE(later) << later.error();
  EXPECT_EQ(later->as_string(), "late") << "the write was applied after its caller had given up";
  EXPECT_EQ(redis.snapshot().discarded_replies, 1U);
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(client_states, user_without_the_right) {
  real_redis server;
  raw_redis admin(server.port());
  admin.call({"ACL", "SETUSER", "app", "on", ">secret", "~app:*", "+@all", "-eval", "-evalsha", "-incr"});
  running_context context;
  auto options = patient(server);
  options.login.user = "app";
  options.login.password = "secret";
  client redis(context.io(), options);
  refusal const noperm{server_errc::noperm, failure_class::misconfigured};
  EXPECT_TRUE(call(redis, command("SET", "app:k", "v")));
  for (auto const& cmd : {command("SET", "other", "v"), command("GET", "other"), command("INCR", "app:n"),
                          command("EVAL", "return 1", 0), command("evalsha", std::string(40, 'a'), 0)}) {
    auto const got = call(redis, cmd);
    ASSERT_FALSE(got) << cmd.name();
    expect_refused(got.error(), noperm, effect::none);
  }
  auto const batch =
      redis
          .async_pipeline(pipeline(command("GET", "app:k"), command("GET", "other"), command("GET", "app:k")),
                          {}, asio::use_future)
          .get();
  EXPECT_TRUE(batch[0]);
  ASSERT_FALSE(batch[1]);
  expect_refused(batch[1].error(), noperm, effect::none);
  EXPECT_TRUE(batch[2]);
  auto const block =
      redis
          .async_transaction(transaction(command("SET", "app:k", "w"), command("GET", "other")), {},
                             asio::use_future)
          .get();
  ASSERT_FALSE(block);
  expect_refused(block.error(), noperm, effect::none);
  EXPECT_EQ(call(redis, command("GET", "app:k"))->as_string(), "v");
  admin.call({"ACL", "SETUSER", "app", "+eval", "+evalsha"});
  // Inside a script the server says ERR, and it is not known what ran before the command that was not
  // allowed.
  auto const evaluated =
      call(redis,
           command("EVAL", "redis.call('SET', KEYS[1], 'x') return redis.call('GET', 'other')", 1, "app:k"));
  ASSERT_FALSE(evaluated);
  expect_refused(evaluated.error(), {server_errc::err, failure_class::caller_error}, effect::unknown);
  EXPECT_EQ(call(redis, command("GET", "app:k"))->as_string(), "x");
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(client_states, mistakes_of_the_caller) {
  real_redis server;
  running_context context;
  client redis(context.io(), patient(server));
  ASSERT_TRUE(call(redis, command("RPUSH", "list", "a")));
  struct mistake {
    command cmd;
    server_errc code;
    effect what;
  };
  mistake const all[] = {
      {command("GET", "list"), server_errc::wrongtype, effect::none},
      {command("GET"), server_errc::err, effect::none},
      {command("NOSUCH"), server_errc::err, effect::none},
      {command("SET", "k", "v", "PX", 0), server_errc::err, effect::none},
      {command("EVALSHA", std::string(40, 'a'), 0), server_errc::noscript, effect::none},
      {command("EVAL", "this is not lua", 0), server_errc::err, effect::unknown},
      {command("EVAL", "redis.call('SET', 'ran', 1) error('after it')", 0), server_errc::err,
       effect::unknown},
      {command("EVAL", "return redis.call('GET', 'list')", 0), server_errc::wrongtype, effect::unknown},
      {command("SCRIPT", "KILL"), server_errc::notbusy, effect::none},
  };
  for (auto const& one : all) {
    auto const got = call(redis, one.cmd);
    ASSERT_FALSE(got) << one.cmd.name();
    expect_refused(got.error(), {one.code, failure_class::caller_error}, one.what);
    EXPECT_FALSE(got.error().fail_mode_applies());
  }
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(client_states, C37_an_error_that_a_script_returns_does_not_deny_what_the_script_did) {
  real_redis server;
  running_context context;
  client redis(context.io(), patient(server));
  char const* const texts[] = {"application NOPROTO diagnostic", "NOPROTO no such thing", "LATER try again",
                               "ERR of mine"};
  int n = 0;
  for (auto const* text : texts) {
    script const body(std::string("redis.call('INCR', KEYS[1]) return redis.error_reply('") + text + "')");
    for (int round = 0; round < 2; ++round) {  // unknown to the server, then known
      auto const got = redis.async_eval(body, keys("counter"), args(), {}, asio::use_future).get();
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().code, errc::server_error) << got.error();
      EXPECT_EQ(got.error().effect, effect::unknown) << got.error();
      EXPECT_NE(got.error().detail->server_text.find(text), std::string::npos) << got.error();
      EXPECT_EQ(call(redis, command("GET", "counter"))->as_string(), std::to_string(++n)) << "not run again";
    }
    auto const whole = call(redis, command("EVAL", body.body(), 1, "counter"));
    ASSERT_FALSE(whole);
    EXPECT_EQ(whole.error().effect, effect::unknown) << whole.error();
    ++n;
  }
  // The same inside a pipeline and a transaction, where another command's refusal is still what it is.
  auto const batch =
      redis
          .async_pipeline(
              pipeline(command("INCR", "counter"),
                       command("EVAL", "redis.call('INCR', KEYS[1]) return redis.error_reply('MINE no')", 1,
                               "counter")),
              {}, asio::use_future)
          .get();
  ASSERT_FALSE(batch[1]);
  EXPECT_EQ(batch[1].error().effect, effect::unknown) << batch[1].error();
  auto const block =
      redis
          .async_transaction(
              transaction(command("EVAL", "redis.call('INCR', KEYS[1]) return redis.error_reply('MINE no')",
                                  1, "counter")),
              {}, asio::use_future)
          .get();
  ASSERT_TRUE(block);
  ASSERT_FALSE((*block)[0]);
  EXPECT_EQ((*block)[0].error().effect, effect::unknown) << (*block)[0].error();
  auto const refused =
      redis
          .async_transaction(transaction(command("EVAL", "return redis.call('INCR', KEYS[1])", 1, "counter"),
                                         command("NOSUCH")),
                             {}, asio::use_future)
          .get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().effect, effect::none) << refused.error();
  EXPECT_EQ(call(redis, command("GET", "counter"))->as_string(), std::to_string(n + 3));
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

}  // namespace
