// SPDX-License-Identifier: BSL-1.0
//
// Breakers of several processes that share a hint through a real redis-server, well and frozen.
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <redoubt/policy/breaker_hint.hpp>

#include "redis/client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// A process: a client of its own, and a breaker in front of something else than this Redis.
struct node {
  node(real_redis const& server, running_context& context, std::string name, client_options o)
      : redis(context.executor(), (o.address.port = static_cast<std::uint16_t>(server.port()), o)),
        guard({.name = "payments",
               .settings = {.consecutive = 3, .open = {.floor = 1h, .base = 1h, .cap = 1h}},
               .seed = 1}),
        hint(redis, guard,
             {.key = "breaker:payments",
              .node = std::move(name),
              .quorum = {.window = 1min},
              .interval = 20ms}) {}

  void break_path() {
    failure f;
    f.code = errc::connection_lost;
    for (int i = 0; i < 3; ++i) guard.try_acquire(steady::now())->record(result<int>(f), steady::now());
  }
  result<void> exchange() { return hint.exchange({}, asio::use_future).get(); }

  client redis;
  breaker guard;
  breaker_hint<> hint;
};

TEST(breaker_hint,
     C95_over_a_real_server_one_node_opens_nobody_two_do_and_a_frozen_store_costs_calls_nothing) {
  real_redis server;
  running_context context;
  std::vector<std::unique_ptr<node>> nodes;
  for (int i = 1; i <= 5; ++i) {
    nodes.push_back(std::make_unique<node>(server, context, "node-" + std::to_string(i), patient(server)));
  }
  nodes[0]->break_path();
  for (int round = 0; round < 2; ++round) {
    for (auto const& n : nodes) ASSERT_TRUE(n->exchange());
  }
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(nodes[i]->hint.snapshot().others, 1u);
    EXPECT_EQ(nodes[i]->guard.snapshot().phase, breaker_phase::closed);
  }

  nodes[1]->break_path();
  ASSERT_TRUE(nodes[1]->exchange());
  ASSERT_TRUE(nodes[2]->exchange());
  EXPECT_EQ(nodes[2]->guard.snapshot().advised, 1u);
  auto const refused = nodes[2]->guard.try_acquire(steady::now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, errc::breaker_open);
  EXPECT_GT(refused.error().retry_after, 0s);
  EXPECT_LE(refused.error().retry_after, 1min) << "not beyond the news";

  // From here on the store is frozen, and one node runs the exchange in the background all the same.
  server.pause();
  node alone(server, context, "node-6", {.timeouts = {.connect = 100ms, .attempt = 100ms, .call = 200ms}});
  asio::cancellation_signal stop;
  std::promise<result<void>> ended;
  asio::post(context.io(), [&] {
    alone.hint.run(asio::bind_cancellation_slot(
        stop.slot(), asio::bind_executor(context.executor(), [&](result<void> r) { ended.set_value(r); })));
  });
  ASSERT_TRUE(eventually([&] { return alone.hint.snapshot().failed >= 3; }));
  EXPECT_EQ(alone.hint.snapshot().advised, 0u) << "no answer, no opinion";
  for (int i = 0; i < 1000; ++i) {
    auto permit = alone.guard.try_acquire(steady::now());
    ASSERT_TRUE(permit) << "calls know nothing of it";
    permit->record(result<int>(1), steady::now());
  }
  alone.break_path();
  EXPECT_EQ(alone.guard.snapshot().phase, breaker_phase::open) << "by itself";

  server.resume();
  ASSERT_TRUE(eventually([&] { return alone.hint.snapshot().reported; }))
      << "and it goes on when the store is back";
  asio::post(context.io(), [&] { stop.emit(asio::cancellation_type::terminal); });
  EXPECT_EQ(ended.get_future().get().error().code, errc::cancelled);
}

}  // namespace
