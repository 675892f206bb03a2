// SPDX-License-Identifier: BSL-1.0
//
// Names: a look-up that hangs holds up neither a call, nor another name, nor the end of the program; every
// connection looks its name up anew; an application may look up for itself.
//
// The system's look-up is replaced for names that end in ".blocked.test": for these it blocks.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net_rig.hpp"

namespace {

std::atomic<int> blocked_look_ups = 0;

}  // namespace

extern "C" int getaddrinfo(char const* host, char const* service, addrinfo const* hints, addrinfo** out) {
  if (host != nullptr && std::string_view(host).ends_with(".blocked.test")) {
    ++blocked_look_ups;
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return EAI_AGAIN;
  }
  using function = int (*)(char const*, char const*, addrinfo const*, addrinfo**);
  static auto const next = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(host, service, hints, out);
}

namespace {

using namespace redoubt;
using namespace redoubt::test_support;

/// Answers when, and what, the test says.
class scripted_resolver final : public host_resolver {
 public:
  void resolve(std::string const& host, reply done) override {
    std::lock_guard const lock(mutex_);
    ++asked_[host];
    if (auto const known = answers_.find(host); known != answers_.end()) return done(known->second);
    open_.push_back(std::move(done));
  }
  void set(std::string const& host, std::vector<std::string> answer) {
    std::lock_guard const lock(mutex_);
    answers_[host] = std::move(answer);
  }
  /// Answers every question that is open.
  void answer(std::vector<std::string> const& with) {
    for (auto const& done : taken()) done(with);
  }
  /// Lets go of them without an answer.
  void forget() { (void)taken(); }
  [[nodiscard]] int asked(std::string const& host) {
    std::lock_guard const lock(mutex_);
    return asked_[host];
  }
  [[nodiscard]] std::vector<reply> taken() {
    std::lock_guard const lock(mutex_);
    return std::exchange(open_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> asked_;
  std::map<std::string, std::vector<std::string>> answers_;
  std::vector<reply> open_;
};

client_options named(std::string host, std::uint16_t port, std::shared_ptr<scripted_resolver> resolver) {
  client_options out{.address = {.host = std::move(host), .port = port}};
  out.resolver = std::move(resolver);
  return out;
}

/// 20 calls with 100 ms towards a name that nobody answers for; meanwhile another host answers.
void expect_held_up_by_nothing(client& silent, client& healthy) {
  crowd all(20);
  for (std::size_t i = 0; i < 20; ++i) all.start(silent, i, command("GET", "k"), {.budget = 100ms});
  auto const begin = steady::now();
  auto const got = call(healthy, command("GET", "k"), {.budget = 20s});
  auto const took = steady::now() - begin;
  EXPECT_TRUE(got) << got.error();
  EXPECT_LT(took, 100ms + slack) << "C17";
  ASSERT_TRUE(all.wait());
  for (auto const& one : all.calls()) {
    ASSERT_FALSE(*one.got);
    auto const& why = one.got->error();
    EXPECT_EQ(why.code, errc::deadline_exceeded) << why;
    EXPECT_EQ(why.phase, phase::resolve) << why;
    EXPECT_EQ(why.effect, effect::none) << why;
    EXPECT_GE(one.took(), 99ms);
    EXPECT_LT(one.took(), 100ms + slack);
  }
}

TEST(name_lookup, C15_C17_a_resolver_that_never_answers_costs_a_call_its_limit_and_no_other_host_anything) {
  scripted_server server(scripted_server::plain());
  auto const resolver = std::make_shared<scripted_resolver>();
  resolver->set("other.test", {"127.0.0.1"});
  running_context context;
  auto options = named("silent.test", server.port(), resolver);
  options.timeouts.connect = 20s;
  client silent(context.io(), options);
  client healthy(context.io(), named("other.test", server.port(), resolver));
  expect_held_up_by_nothing(silent, healthy);
  EXPECT_EQ(resolver->asked("silent.test"), 1) << "at most one look-up at a time";
  resolver->answer({"127.0.0.1"});
  EXPECT_TRUE(first_success(silent, 5s)) << "usable once the resolver wakes up";
  EXPECT_EQ(resolver->asked("silent.test"), 1);
}

TEST(name_lookup, C15_the_same_with_every_limit_at_its_default) {
  auto const resolver = std::make_shared<scripted_resolver>();
  running_context context;
  client silent(context.io(), named("silent.test", 1, resolver));
  for (int round = 0; round < 20; ++round) {
    auto const begin = steady::now();
    auto const got = call(silent, command("GET", "k"));
    ASSERT_FALSE(got);
    EXPECT_LT(steady::now() - begin, 150ms + slack);
    EXPECT_EQ(got.error().phase, phase::resolve) << got.error();
    EXPECT_EQ(got.error().effect, effect::none);
  }
  EXPECT_EQ(resolver->asked("silent.test"), 1) << "the attempts wait for the look-up that is under way";
}

TEST(name_lookup, C16_C17_a_system_look_up_that_blocks_is_left_behind) {
  scripted_server server(scripted_server::plain());
  auto const before = blocked_look_ups.load();
  steady::time_point end;
  {
    running_context context;
    client_options options{.address = {.host = "one.blocked.test", .port = server.port()}};
    options.timeouts.connect = 20s;
    client silent(context.io(), options);
    client healthy(context.io(), {.address = {.host = "localhost", .port = server.port()}});
    expect_held_up_by_nothing(silent, healthy);
    EXPECT_EQ(blocked_look_ups - before, 1);
    end = steady::now();
  }
  EXPECT_LT(steady::now() - end, 1s + slack) << "~client and the end of the context";
}

TEST(name_lookup, C16_the_program_ends_while_a_look_up_blocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const begin = steady::now();
  EXPECT_EXIT(
      {
        steady::time_point left;
        {
          running_context context;
          client silent(context.io(), {.address = {.host = "two.blocked.test"}});
          if (call(silent, command("GET", "k"), {.budget = 50ms})) std::exit(2);
          left = steady::now();
        }
        std::exit(steady::now() - left < 1s + slack ? 0 : 3);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_LT(steady::now() - begin, 10s) << "the look-up itself blocks for 30 s";
}

TEST(name_lookup, C49_every_connection_looks_the_name_up_anew) {
  scripted_server a(scripted_server::plain());
  scripted_server b(scripted_server::plain(), {.where = scripted_options::family::ipv6, .port = a.port()});
  auto const resolver = std::make_shared<scripted_resolver>();
  resolver->set("moving.test", {"127.0.0.1"});
  running_context context;
  client redis(context.io(), patient(named("moving.test", a.port(), resolver)));
  ASSERT_TRUE(call(redis, command("GET", "k")));
  auto const lose_all = [&] {
    auto const before = redis.snapshot().lost;
    a.reset_all();
    EXPECT_TRUE(eventually([&] { return redis.snapshot().lost > before; }));
  };
  for (std::size_t round = 1; round < 4; ++round) {
    lose_all();
    ASSERT_TRUE(eventually([&] { return call(redis, command("GET", "k")).has_value(); }));
    EXPECT_EQ(static_cast<std::uint64_t>(resolver->asked("moving.test")), redis.snapshot().attempts) << round;
  }
  EXPECT_EQ(b.accepted(), 0U);
  resolver->set("moving.test", {"::1"});
  a.refuse();
  lose_all();
  auto const took = first_success(redis, 5s);
  ASSERT_TRUE(took);
  EXPECT_LT(*took, 250ms + slack) << "within one backoff step";
  EXPECT_EQ(b.accepted(), 1U);
}

TEST(name_lookup, C49_clients_of_one_context_share_a_look_up_under_way_but_no_answer_of_yesterday) {
  scripted_server server(scripted_server::plain());
  auto const resolver = std::make_shared<scripted_resolver>();
  running_context context;
  auto const options = patient(named("shared.test", server.port(), resolver));
  client first(context.io(), options);
  client second(context.io(), options);
  crowd all(2);
  all.start(first, 0, command("GET", "k"), {.budget = 20s});
  all.start(second, 1, command("GET", "k"), {.budget = 20s});
  ASSERT_TRUE(eventually([&] {
    return first.snapshot().state == link_state::resolving &&
           second.snapshot().state == link_state::resolving;
  }));
  EXPECT_EQ(resolver->asked("shared.test"), 1);
  resolver->answer({"127.0.0.1"});
  ASSERT_TRUE(all.wait());
  EXPECT_TRUE(*all[0].got) << all[0].got->error();
  EXPECT_TRUE(*all[1].got) << all[1].got->error();
  client third(context.io(), options);
  crowd one(1);
  one.start(third, 0, command("GET", "k"), {.budget = 20s});
  ASSERT_TRUE(eventually([&] { return resolver->asked("shared.test") == 2; }));
  resolver->answer({"127.0.0.1"});
  ASSERT_TRUE(one.wait());
  EXPECT_TRUE(*one[0].got);
}

TEST(name_lookup, a_resolver_that_throws_gives_up_or_answers_nonsense_has_failed) {
  struct throwing final : host_resolver {
    void resolve(std::string const&, reply) override { throw std::runtime_error("no"); }
  };
  auto const silent = std::make_shared<scripted_resolver>();
  auto const nonsense = std::make_shared<scripted_resolver>();
  nonsense->set("name.test", {"not an address", ""});
  auto const empty = std::make_shared<scripted_resolver>();
  empty->set("name.test", {});
  running_context context;
  for (std::shared_ptr<host_resolver> const& one :
       {std::shared_ptr<host_resolver>(std::make_shared<throwing>()), std::shared_ptr<host_resolver>(silent),
        std::shared_ptr<host_resolver>(nonsense), std::shared_ptr<host_resolver>(empty)}) {
    client_options options{.address = {.host = "name.test"}};
    options.resolver = one;
    client redis(context.io(), patient(options));
    crowd all(1);
    all.start(redis, 0, command("GET", "k"), {.budget = 20s});
    if (one == silent) {
      ASSERT_TRUE(eventually([&] { return silent->asked("name.test") == 1; }));
      silent->forget();
    }
    ASSERT_TRUE(all.wait());
    EXPECT_EQ(all[0].got->error().code, errc::resolve_failed) << all[0].got->error();
    EXPECT_EQ(all[0].got->error().phase, phase::resolve);
  }
}

TEST(name_lookup, C16_an_answer_that_comes_when_client_and_context_are_gone_does_nothing) {
  auto const resolver = std::make_shared<scripted_resolver>();
  {
    running_context context;
    client redis(context.io(), named("late.test", 1, resolver));
    (void)call(redis, command("GET", "k"), {.budget = 20ms});
  }
  for (auto const& done : resolver->taken()) {
    done({"127.0.0.1"});
    done({"127.0.0.1"});
  }
}

TEST(name_lookup, numeric_addresses_and_sockets_are_not_asked_about) {
  scripted_server server(scripted_server::plain());
  scripted_server local(scripted_server::plain(), {.where = scripted_options::family::unix_socket});
  auto const resolver = std::make_shared<scripted_resolver>();
  running_context context;
  client numeric(context.io(), patient(named("127.0.0.1", server.port(), resolver)));
  EXPECT_TRUE(call(numeric, command("GET", "k")));
  auto by_path = patient(towards(local));
  by_path.resolver = resolver;
  client on_disk(context.io(), by_path);
  EXPECT_TRUE(call(on_disk, command("GET", "k")));
  EXPECT_EQ(resolver->asked("127.0.0.1"), 0);
}

}  // namespace
