// SPDX-License-Identifier: BSL-1.0
//
// Ten thousand callers who give up, on one connection that has to survive them.
#include <memory>
#include <mutex>
#include <set>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/core/random.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

constexpr int wanted = 10'000;

struct tally {
  int cancelled = 0;
  int written = 0;  // of these: effect unknown
  int answered = 0;
  int wrong = 0;
  std::set<std::string> unsent;  // cancelled with effect none
};

/// Calls and gives up, each at a random moment, until all callers together have given up often enough.
asio::awaitable<void> give_up(client& redis, std::uint64_t seed, tally& sum) {
  random_source random(seed);
  auto const here = co_await asio::this_coro::executor;
  asio::steady_timer pause(here);
  for (int i = 0; sum.cancelled < wanted; ++i) {
    auto const name = std::to_string(seed) + ":" + std::to_string(i);
    asio::cancellation_signal stop;
    std::optional<result<reply>> got;
    asio::steady_timer ended(here, asio::steady_timer::time_point::max());
    auto note = [&](result<reply> r) {
      got = std::move(r);
      ended.cancel();
    };
    redis.async_call(command("GET", name), {},
                     asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(here, note)));
    pause.expires_after(std::chrono::microseconds(random.below(5000)));
    co_await pause.async_wait(asio::use_awaitable);
    stop.emit(asio::cancellation_type::terminal);
    while (!got) {
      boost::system::error_code ignored;
      co_await ended.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (*got) {
      ++sum.answered;
      if ((*got)->as_string() != "value of " + name) ++sum.wrong;
      continue;
    }
    EXPECT_EQ(got->error().code, errc::cancelled) << got->error();
    ++sum.cancelled;
    if (got->error().effect == effect::unknown) {
      ++sum.written;
    } else {
      sum.unsent.insert(name);
    }
  }
}

TEST(cancellation, C01_C03_ten_thousand_at_random_leave_one_connection_and_exact_counters) {
  scripted_server* self = nullptr;
  scripted_server server([&self](peer& p) {
    if (!p.greet()) return;
    while (auto const command = p.read()) p.later(4ms, self->answer_of(*command));
  });
  self = &server;
  running_context context;
  client redis(context.io(), patient(towards(server)));
  ASSERT_TRUE(call(redis, command("PING")));
  tally sum;
  std::vector<std::future<void>> all;
  auto const one_by_one = asio::make_strand(context.io());
  for (std::uint64_t i = 1; i <= 200; ++i) {
    all.push_back(asio::co_spawn(one_by_one, give_up(redis, i, sum), asio::use_future));
  }
  for (auto& one : all) one.get();
  ASSERT_TRUE(eventually([&] { return redis.snapshot().late_owed == 0; }));
  ASSERT_TRUE(call(redis, command("PING")));

  auto const now = redis.snapshot();
  EXPECT_GE(sum.cancelled, wanted);
  EXPECT_EQ(sum.wrong, 0);
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_EQ(now.readied, 1U);
  EXPECT_EQ(now.lost, 0U);
  EXPECT_EQ(now.cancelled, static_cast<std::uint64_t>(sum.cancelled));
  EXPECT_EQ(now.discarded_replies, static_cast<std::uint64_t>(sum.written));
  EXPECT_EQ(now.answered, static_cast<std::uint64_t>(sum.answered) + 2);
  EXPECT_EQ(now.in_flight, 0U);
  // The server knows: what was cancelled unsent never came, all else did.
  std::size_t seen = 0;
  for (auto const& command : server.log()) {
    if (!is(command, "GET")) continue;
    ++seen;
    EXPECT_FALSE(sum.unsent.contains(command[1])) << command[1];
  }
  EXPECT_EQ(seen, static_cast<std::size_t>(sum.written + sum.answered));
  RecordProperty("cancelled", sum.cancelled);
  RecordProperty("discarded", sum.written);
}

}  // namespace
