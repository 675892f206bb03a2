// SPDX-License-Identifier: BSL-1.0
//
// Getting in: passwords, users, databases, names, a full server, a role that changes under a live connection.
#include <atomic>
#include <filesystem>

#include <boost/asio/use_future.hpp>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

std::string info(raw_redis& admin, char const* section) { return admin.call({"INFO", section}); }

TEST(client_login, C40_a_wrong_password_is_reported_by_every_call_and_tried_seldom) {
  real_redis server({"--requirepass", "right"});
  raw_redis admin(server.port());
  admin.call({"AUTH", "right"});
  running_context context;
  auto options = patient(server);
  options.login.password = "wrong";
  client redis(context.io(), options);
  auto const start = steady::now();
  std::uint64_t most_clients = 0;
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_until(start + i * 5ms);
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    ASSERT_EQ(got.error().code, errc::server_error) << got.error();
    ASSERT_EQ(got.error().server, server_errc::wrongpass) << got.error();
    ASSERT_EQ(got.error().effect, effect::none);
    ASSERT_EQ(got.error().group(), failure_class::misconfigured) << got.error();
    if (i % 20 == 0)
      most_clients = std::max(most_clients, number_in(info(admin, "clients"), "connected_clients:"));
  }
  auto const attempts = number_in(info(admin, "errorstats"), "errorstat_WRONGPASS:count=");
  EXPECT_GE(attempts, 2U) << "it is tried again, though";
  EXPECT_LE(attempts, 12U);
  EXPECT_EQ(number_in(info(admin, "errorstats"), "errorstat_NOAUTH:count="), attempts * 2)
      << "after each, CLIENT SETNAME and PING of the same handshake, and no user command";
  EXPECT_LE(most_clients, 2U) << "the client has more than one connection";
  EXPECT_EQ(redis.snapshot().attempts, attempts);
  admin.call({"CONFIG", "SET", "requirepass", "wrong"});
  EXPECT_TRUE(first_success(redis, 5s)) << "the password became right, and nothing had to be restarted";
}

TEST(client_login, without_a_password_where_one_is_needed) {
  real_redis server({"--requirepass", "right"});
  running_context context;
  client redis(context.io(), patient(server));
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().server, server_errc::noauth) << got.error();
  EXPECT_EQ(got.error().group(), failure_class::misconfigured);
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_EQ(got.error().phase, phase::handshake);
}

TEST(client_login, with_a_password_where_none_is_set) {
  real_redis server;
  running_context context;
  auto options = patient(server);
  options.login.password = "superfluous";
  client redis(context.io(), options);
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::server_error) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_EQ(got.error().phase, phase::handshake);
  EXPECT_EQ(got.error().message().find("superfluous"), std::string::npos);
}

TEST(client_login, C43_a_full_server_is_not_stormed) {
  real_redis server({"--maxclients", "1"});
  auto admin = std::make_unique<raw_redis>(server.port());
  admin->call({"PING"});
  running_context context;
  client redis(context.io(), patient(server));
  auto const start = steady::now();
  int told = 0;
  int calls = 0;
  for (; steady::now() - start < 5s; ++calls) {
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    ASSERT_EQ(got.error().effect, effect::none);
    ASSERT_TRUE(got.error().fail_mode_applies()) << got.error();
    if (got.error().server == server_errc::max_clients) ++told;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_GT(told, calls / 2) << "of " << calls;
  EXPECT_LE(redis.snapshot().attempts, 12U);
  EXPECT_EQ(number_in(info(*admin, "stats"), "rejected_connections:"), redis.snapshot().attempts);
  admin.reset();
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(client_login, C47_a_demoted_primary_is_left_for_the_new_one) {
  real_redis old_primary;
  real_redis new_primary({"--repl-diskless-sync-delay", "0"});
  raw_redis old_admin(old_primary.port());
  raw_redis new_admin(new_primary.port());
  new_admin.call({"SET", "k", "v"});
  // A name that leads somewhere else from one moment to the next: a link to the socket.
  auto const name = old_primary.dir() / "current";
  std::filesystem::create_symlink(old_primary.socket_path(), name);
  running_context context;
  auto options = patient(old_primary);
  options.address.unix_path = name.string();
  client redis(context.io(), options);
  ASSERT_TRUE(call(redis, command("SET", "k", "before")));

  constexpr int at_a_time = 8;
  std::atomic<bool> over = false;
  std::atomic<int> readonly = 0;
  std::atomic<int> other = 0;
  std::atomic<int> fine_after = 0;
  std::atomic<bool> flipped = false;
  std::vector<std::thread> writers;
  for (int i = 0; i < at_a_time; ++i) {
    writers.emplace_back([&] {
      while (!over) {
        bool const after = flipped;
        auto const got = call(redis, command("SET", "k", "w"));
        if (got) {
          if (after) ++fine_after;
        } else if (got.error().server == server_errc::readonly) {
          EXPECT_EQ(got.error().effect, effect::none);
          ++readonly;
        } else {
          ADD_FAILURE() << got.error();
          ++other;
        }
      }
    });
  }
  std::this_thread::sleep_for(50ms);
  std::filesystem::create_symlink(new_primary.socket_path(), name.string() + "2");
  std::filesystem::rename(name.string() + "2", name);
  old_admin.call({"REPLICAOF", "127.0.0.1", std::to_string(new_primary.port())});
  flipped = true;
  EXPECT_TRUE(eventually([&] { return fine_after > 100; }));
  over = true;
  for (auto& one : writers) one.join();
  EXPECT_GE(readonly, 1);
  EXPECT_LE(readonly, at_a_time) << "no more than were under way when the role changed";
  EXPECT_EQ(other, 0);
  EXPECT_EQ(redis.snapshot().retired, 1U);
  EXPECT_EQ(redis.snapshot().attempts, 2U);
  EXPECT_EQ(new_admin.call({"GET", "k"}), "$1\r\nw\r\n");
}

TEST(client_login, C47_a_target_that_stays_read_only_causes_no_reconnect_storm) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  client redis(context.io(), patient(server));
  ASSERT_TRUE(call(redis, command("SET", "k", "v")));
  admin.call({"REPLICAOF", "127.0.0.1", "1"});
  auto const start = steady::now();
  int calls = 0;
  for (; steady::now() - start < 2s; ++calls) {
    auto const set = call(redis, command("SET", "k", "w"));
    ASSERT_FALSE(set);
    ASSERT_EQ(set.error().server, server_errc::readonly) << set.error();
    ASSERT_EQ(set.error().effect, effect::none);
    auto const get = call(redis, command("GET", "k"));
    ASSERT_TRUE(get) << get.error();
    ASSERT_EQ(get->as_string(), "v");
  }
  // Steps of 10, 20, 40, 80, 160 and then 250 ms.
  EXPECT_LE(redis.snapshot().attempts, 16U) << "in " << calls << " writes";
  admin.call({"REPLICAOF", "NO", "ONE"});
  auto const set = call(redis, command("SET", "k", "w"));
  EXPECT_TRUE(set) << set.error();
}

TEST(client_login, C71_passwords_with_special_characters_in_a_url) {
  real_redis server({"--requirepass", "p@s#/%+"});
  raw_redis admin(server.port());
  admin.call({"AUTH", "p@s#/%+"});
  admin.call({"ACL", "SETUSER", "u:ser", "on", ">p@s#/%+", ">abc+def=", "~*", "+@all"});
  running_context context;
  auto const at = "@127.0.0.1:" + std::to_string(server.port());
  for (auto const& url :
       {"redis://:p%40s%23%2F%25%2B" + at + "/2", "redis://u%3Aser:p%40s%23%2F%25%2B" + at + "/2",
        "redis://u%3aser:abc+def=" + at + "/2"}) {
    client redis(context.io(), {.url = url});
    auto const got = call(redis, command("ACL", "WHOAMI"), {.budget = 20s});
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(got->as_string(), url.find("ser") == std::string::npos ? "default" : "u:ser");
    auto const list = call(redis, command("CLIENT", "INFO"), {.budget = 20s});
    EXPECT_NE(list->as_string().find(" db=2 "), std::string::npos) << *list;
  }
  // Fields win over the URL and are never decoded.
  client by_fields(context.io(), {.url = "redis://:wrong%40" + at, .login = {.password = "p@s#/%+"}});
  EXPECT_TRUE(call(by_fields, command("PING"), {.budget = 20s}));
  try {
    client never(context.io(), {.url = "redis://:p@s#/%+" + at});
    ADD_FAILURE() << "accepted";
  } catch (std::invalid_argument const& e) {
    EXPECT_EQ(std::string(e.what()).find("p@s"), std::string::npos) << e.what();
  }
}

TEST(client_login, database_and_name_are_set_on_every_connection) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  auto options = patient(server);
  options.login.database = 3;
  options.login.client_name = "shop-frontend";
  client redis(context.io(), options);
  for (int round = 0; round < 3; ++round) {
    auto const value = std::to_string(round);
    ASSERT_TRUE(eventually([&] { return call(redis, command("SET", "k", value)).has_value(); }));
    EXPECT_EQ(admin.call({"GET", "k"}), "$-1\r\n");
    admin.call({"SELECT", "3"});
    EXPECT_EQ(admin.call({"GET", "k"}), "$1\r\n" + value + "\r\n");
    admin.call({"SELECT", "0"});
    auto const list = admin.call({"CLIENT", "LIST"});
    EXPECT_NE(list.find(" name=shop-frontend "), std::string::npos) << list;
    admin.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == static_cast<std::uint64_t>(round) + 1; }));
  }
  EXPECT_EQ(redis.snapshot().readied, 3U);
}

TEST(client_login, a_database_that_does_not_exist) {
  real_redis server;
  running_context context;
  auto options = patient(server);
  options.login.database = 4000;
  client redis(context.io(), options);
  auto const got = call(redis, command("SET", "k", "v"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::server_error) << got.error();
  EXPECT_EQ(got.error().phase, phase::handshake);
  EXPECT_EQ(got.error().effect, effect::none);
  raw_redis admin(server.port());
  EXPECT_EQ(admin.call({"GET", "k"}), "$-1\r\n") << "not written into another database";
}

TEST(client_login, an_idle_connection_that_the_server_closes_costs_no_call) {
  real_redis server({"--timeout", "1"});
  running_context context;
  client redis(context.io(), patient(server));
  ASSERT_TRUE(call(redis, command("SET", "k", "v")));
  ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == 1; }));
  EXPECT_EQ(redis.snapshot().state, link_state::idle) << "nobody asked for a new one";
  auto const got = call(redis, command("GET", "k"));
  ASSERT_TRUE(got) << got.error();
  EXPECT_EQ(got->as_string(), "v");
  EXPECT_EQ(redis.snapshot().attempts, 2U);
}

}  // namespace
