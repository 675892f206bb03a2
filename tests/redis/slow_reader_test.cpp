// SPDX-License-Identifier: BSL-1.0
//
// C59: a real server ends a connection whose replies pile up.
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;

TEST(slow_reader, C59_that_the_server_gives_up_learns_it_and_goes_on_with_a_new_connection) {
  real_redis server({"--client-output-buffer-limit", "normal 1mb 1mb 0"});
  raw_redis admin(server.port());
  constexpr std::size_t size = 200'000;
  ASSERT_EQ(admin.call({"SET", "big", std::string(size, 'x')}), "+OK\r\n");

  boost::asio::io_context io;
  client redis(io, patient(server));
  auto const run_until = [&io](auto done) {
    auto const end = steady::now() + 20s;
    while (!done() && steady::now() < end) {
      io.restart();
      io.run_one_for(5ms);
    }
    return done();
  };
  std::optional<result<reply>> first;
  redis.async_call(command("GET", "big"), {}, [&](result<reply> r) { first = std::move(r); });
  ASSERT_TRUE(run_until([&] { return first.has_value(); }));
  ASSERT_TRUE(*first) << first->error();

  std::vector<result<reply>> got;
  constexpr std::size_t calls = 100;  // 20 MB, more than the system's buffers take
  for (std::size_t i = 0; i < calls; ++i) {
    redis.async_call(command("GET", "big"), {}, [&](result<reply> r) { got.push_back(std::move(r)); });
  }
  ASSERT_TRUE(run_until([&] { return redis.snapshot().owed > 0; }));
  // Nobody reads now, until the server has had enough.
  ASSERT_TRUE(eventually([&] {
    return number_in(admin.call({"INFO", "clients"}), "connected_clients:") == 1;  // the test's own
  }));

  ASSERT_TRUE(run_until([&] { return got.size() == calls; }));
  std::size_t lost = 0;
  for (auto const& one : got) {
    if (one) {
      EXPECT_EQ(one->as_string().size(), size);
      continue;
    }
    ++lost;
    EXPECT_EQ(one.error().code, errc::connection_lost) << one.error();
    EXPECT_EQ(one.error().effect, effect::unknown) << one.error();
  }
  EXPECT_GT(lost, 0U);

  std::optional<result<reply>> next;
  redis.async_call(command("GET", "big"), {}, [&](result<reply> r) { next = std::move(r); });
  ASSERT_TRUE(run_until([&] { return next.has_value(); }));
  EXPECT_TRUE(*next) << next->error();
  EXPECT_EQ(redis.snapshot().readied, 2U);
  EXPECT_EQ(redis.snapshot().lost, 1U);
}

}  // namespace
