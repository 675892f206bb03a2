// SPDX-License-Identifier: BSL-1.0
//
// Credentials that an application provides anew for every connection.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;

/// A provider that is a function, and counts.
class provider final : public credentials_provider {
 public:
  using function = std::function<void(reply)>;
  explicit provider(function what) : what_(std::move(what)) {}
  void get(reply done) override {
    ++asked_;
    what_(std::move(done));
  }
  [[nodiscard]] int asked() const noexcept { return asked_; }

 private:
  function what_;
  std::atomic<int> asked_ = 0;
};

client_options with(real_redis const& server, std::shared_ptr<credentials_provider> who) {
  auto out = patient(server);
  out.credentials = std::move(who);
  return out;
}

/// A password that can be changed, said from another thread after a moment.
class rotating final : public credentials_provider {
 public:
  explicit rotating(std::string first) : password_(std::move(first)) {}
  ~rotating() override {
    for (auto& one : threads_) one.join();
  }
  void get(reply done) override {
    std::lock_guard const lock(mutex_);
    ++asked_;
    threads_.emplace_back([done = std::move(done), who = credentials{"shop", password_}] {
      std::this_thread::sleep_for(5ms);
      done(who);
    });
  }
  void set(std::string password) {
    std::lock_guard const lock(mutex_);
    password_ = std::move(password);
  }
  [[nodiscard]] std::uint64_t asked() {
    std::lock_guard const lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::string password_;
  std::uint64_t asked_ = 0;
  std::vector<std::thread> threads_;
};

TEST(credentials, C36_a_rotated_password_is_right_at_the_first_attempt) {
  real_redis server;
  raw_redis admin(server.port());
  admin.call({"ACL", "SETUSER", "shop", "on", ">pw0", "~*", "+@all"});
  auto const who = std::make_shared<rotating>("pw0");
  running_context context;
  client redis(context.io(), with(server, who));
  for (int round = 1; round < 6; ++round) {
    auto const got = call(redis, command("ACL", "WHOAMI"));
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(got->as_string(), "shop");
    auto const before = std::to_string(round - 1);
    auto const after = std::to_string(round);
    who->set("pw" + after);
    admin.call({"ACL", "SETUSER", "shop", "<pw" + before, ">pw" + after});
    admin.call({"CLIENT", "KILL", "USER", "shop"});
    ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == static_cast<std::uint64_t>(round); }));
  }
  auto const s = redis.snapshot();
  EXPECT_EQ(s.failed, 0U);
  EXPECT_EQ(s.attempts, 5U);
  EXPECT_EQ(who->asked(), s.attempts) << "once per handshake";
  EXPECT_EQ(number_in(admin.call({"INFO", "errorstats"}), "errorstat_WRONGPASS:count="), 0U);
}

TEST(credentials, C40_a_password_that_becomes_right_in_the_provider_heals_by_itself) {
  real_redis server({"--requirepass", "right"});
  std::atomic<bool> right = false;
  auto const who = std::make_shared<provider>(
      [&right](auto done) { done(credentials{.password = right ? "right" : "wrong"}); });
  running_context context;
  client redis(context.io(), with(server, who));
  auto const begin = steady::now();
  for (int i = 0; i < 50; ++i) {
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().server, server_errc::wrongpass) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LE(who->asked(), 1 + (steady::now() - begin) / 500ms) << "the pause bounds the provider too";
  right = true;
  EXPECT_TRUE(first_success(redis, 5s));
}

TEST(credentials, C36_a_slow_provider_costs_a_call_its_limit) {
  real_redis server({"--requirepass", "right"});
  auto const who = std::make_shared<provider>([](auto done) {
    std::thread([done = std::move(done)] {
      std::this_thread::sleep_for(300ms);
      done(credentials{.password = "right"});
    }).detach();
  });
  running_context context;
  client redis(context.io(), with(server, who));
  auto const begin = steady::now();
  auto const got = call(redis, command("GET", "k"), {.budget = 100ms});
  auto const took = steady::now() - begin;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().phase, phase::handshake) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_LT(took, 100ms + slack);
  EXPECT_TRUE(first_success(redis, 5s)) << "the answer is used when it comes";
  EXPECT_EQ(who->asked(), 1);
}

TEST(credentials, C36_a_provider_that_throws_declines_or_lets_go_hangs_nothing) {
  real_redis server({"--requirepass", "right"});
  running_context context;
  for (auto const& way :
       {provider::function([](auto) { throw std::runtime_error("S3cr3t-pw"); }),
        provider::function([](auto done) { done(std::nullopt); }), provider::function([](auto) {})}) {
    client redis(context.io(), with(server, std::make_shared<provider>(way)));
    auto const got = call(redis, command("GET", "k"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::no_credentials) << got.error();
    EXPECT_EQ(got.error().phase, phase::handshake);
    EXPECT_EQ(got.error().effect, effect::none);
    EXPECT_EQ(got.error().message().find("S3cr3t"), std::string::npos);
  }
}

TEST(credentials, C39_without_a_password_nothing_is_guessed) {
  real_redis server({"--requirepass", "right"});
  auto const who = std::make_shared<provider>([](auto done) { done(credentials{}); });
  running_context context;
  client redis(context.io(), with(server, who));
  auto const got = call(redis, command("SET", "k", "v"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().server, server_errc::noauth) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  raw_redis admin(server.port());
  admin.call({"AUTH", "right"});
  EXPECT_EQ(admin.call({"GET", "k"}), "$-1\r\n");
}

TEST(credentials, C16_an_answer_that_comes_when_client_and_context_are_gone_does_nothing) {
  real_redis server;
  std::vector<credentials_provider::reply> kept;
  std::mutex mutex;
  auto const who = std::make_shared<provider>([&](auto done) {
    std::lock_guard const lock(mutex);
    kept.push_back(std::move(done));
  });
  {
    running_context context;
    client redis(context.io(), with(server, who));
    (void)call(redis, command("GET", "k"), {.budget = 100ms});
  }
  std::lock_guard const lock(mutex);
  for (auto const& done : kept) {
    done(credentials{.password = "late"});
    done(credentials{.password = "twice"});
  }
}

TEST(credentials, two_sources_of_them_are_refused) {
  running_context context;
  client_options options{.url = "redis://:S3cr3t-pw@localhost"};
  options.credentials = std::make_shared<provider>([](auto) {});
  try {
    client never(context.io(), options);
    ADD_FAILURE() << "accepted";
  } catch (std::invalid_argument const& e) {
    EXPECT_NE(std::string(e.what()).find("credentials"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find("S3cr3t"), std::string::npos) << e.what();
  }
}

}  // namespace
