// SPDX-License-Identifier: BSL-1.0
//
// Several addresses behind one name, some of them dead.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;

class fixed_resolver final : public host_resolver {
 public:
  explicit fixed_resolver(std::vector<std::string> answer) : answer_(std::move(answer)) {}
  void resolve(std::string const&, reply done) override { done(answer_); }

 private:
  std::vector<std::string> answer_;
};

/// Listens but accepts nothing, and its queue is full: whoever connects hears nothing.
class black_hole {
 public:
  black_hole(std::string const& address, std::uint16_t port) {
    if (address.find(':') != std::string::npos) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(where_);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
      size_ = sizeof v6;
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(where_);
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
      size_ = sizeof v4;
    }
    auto const listener = add(0);
    ready_ = ::bind(listener, generic(), size_) == 0 && ::listen(listener, 0) == 0;
    for (int i = 0; i < 4; ++i) (void)::connect(add(SOCK_NONBLOCK), generic(), size_);
  }
  ~black_hole() {
    for (auto const fd : open_) ::close(fd);
  }
  black_hole(black_hole const&) = delete;
  black_hole& operator=(black_hole const&) = delete;
  [[nodiscard]] bool ready() const noexcept { return ready_; }

 private:
  sockaddr* generic() noexcept { return reinterpret_cast<sockaddr*>(&where_); }
  int add(int flags) {
    open_.push_back(::socket(where_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    return open_.back();
  }
  sockaddr_storage where_{};
  socklen_t size_ = 0;
  bool ready_ = false;
  std::vector<int> open_;
};

client_options behind(std::vector<std::string> addresses, std::uint16_t port, duration limit) {
  client_options out{.address = {.host = "many.test", .port = port}};
  out.resolver = std::make_shared<fixed_resolver>(std::move(addresses));
  out.timeouts = {.connect = limit, .attempt = limit, .call = limit};
  out.reconnect.stall_limit = std::max<duration>(limit, 1s);
  return out;
}

TEST(addresses, C50_a_dead_one_of_the_preferred_family_delays_the_live_one_a_little) {
  scripted_server live(scripted_server::plain());
  black_hole dead("::1", live.port());
  ASSERT_TRUE(dead.ready());
  running_context context;
  client redis(context.io(), behind({"::1", "127.0.0.1"}, live.port(), 10s));
  auto const begin = steady::now();
  auto const got = call(redis, command("GET", "k"));
  auto const took = steady::now() - begin;
  ASSERT_TRUE(got) << got.error();
  EXPECT_GE(took, 250ms) << "the dead one was not tried first";
  EXPECT_LE(took, 600ms + slack);
  EXPECT_EQ(redis.snapshot().attempts, 1U);
}

TEST(addresses, C50_six_dead_ones_together_cost_one_limit) {
  auto const port = scripted_server([](peer&) {}).port();  // free again
  std::vector<std::unique_ptr<black_hole>> holes;
  std::vector<std::string> addresses;
  for (int i = 2; i < 8; ++i) {
    addresses.push_back("127.0.0." + std::to_string(i));
    holes.push_back(std::make_unique<black_hole>(addresses.back(), port));
    ASSERT_TRUE(holes.back()->ready());
  }
  running_context context;
  auto options = behind(addresses, port, 300ms);
  options.timeouts.connect = 10s;
  client redis(context.io(), options);
  auto const begin = steady::now();
  auto const got = call(redis, command("GET", "k"), {.budget = 300ms});
  auto const took = steady::now() - begin;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::deadline_exceeded) << got.error();
  EXPECT_EQ(got.error().phase, phase::connect) << got.error();
  EXPECT_EQ(got.error().effect, effect::none);
  EXPECT_GE(took, 299ms);
  EXPECT_LE(took, 300ms + slack);
}

TEST(addresses, C50_a_refused_one_costs_nothing) {
  scripted_server live(scripted_server::plain());
  running_context context;
  for (int round = 0; round < 8; ++round) {  // the order within the family is random
    client redis(context.io(), behind({"127.0.0.9", "127.0.0.1", "127.0.0.8"}, live.port(), 10s));
    auto const begin = steady::now();
    auto const got = call(redis, command("GET", "k"));
    ASSERT_TRUE(got) << got.error();
    EXPECT_LE(steady::now() - begin, 50ms + slack);
  }
}

TEST(addresses, C50_all_refused_is_refused) {
  auto const port = scripted_server([](peer&) {}).port();
  running_context context;
  client redis(context.io(), behind({"127.0.0.9", "::1", "127.0.0.8"}, port, 10s));
  auto const begin = steady::now();
  auto const got = call(redis, command("GET", "k"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connection_refused) << got.error();
  EXPECT_EQ(got.error().phase, phase::connect);
  EXPECT_LE(steady::now() - begin, 1s + slack);
}

TEST(addresses, C80_closing_in_the_middle_of_a_race_ends_it) {
  scripted_server live(scripted_server::plain());
  black_hole first("127.0.0.2", live.port());
  black_hole second("127.0.0.3", live.port());
  for (auto const wait : {0ms, 1ms, 20ms, 60ms}) {
    running_context context;
    crowd all(1);
    {
      client redis(context.io(), behind({"127.0.0.2", "127.0.0.3"}, live.port(), 10s));
      all.start(redis, 0, command("GET", "k"));
      std::this_thread::sleep_for(wait);
    }
    ASSERT_TRUE(all.wait());
    EXPECT_EQ(all[0].got->error().code, errc::closed) << all[0].got->error();
  }
}

TEST(addresses, a_context_that_is_destroyed_in_the_middle_leaks_nothing) {
  scripted_server live(scripted_server::plain());
  black_hole dead("127.0.0.2", live.port());
  for (int turns = 0; turns < 8; ++turns) {
    boost::asio::io_context io;
    client redis(io, behind({"127.0.0.2", "127.0.0.1"}, live.port(), 10s));
    redis.async_call(command("GET", "k"), {}, [](result<reply> const&) {});
    for (int i = 0; i < turns; ++i) io.run_one_for(10ms);
  }
}

}  // namespace
