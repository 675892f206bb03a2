// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/single_flight.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "unit/guard_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::deadline;
using redoubt::effect;
using redoubt::errc;
using redoubt::result;
using redoubt::testing::world;
using test::told;
using flights = redoubt::single_flight<std::string, int>;

TEST(single_flight, followers_share_the_leaders_value) {
  world w;
  flights f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  std::array<told, 5> callers;
  for (auto& c : callers) call(w, s, {}, c, std::string("a"));
  told other;
  call(w, s, {}, other, std::string("b"));
  w.run_for(10ms);
  EXPECT_EQ(op.started(), 2u);
  op.end(0, result<int>(7));
  w.run_for(1ms);
  for (auto& c : callers) EXPECT_TRUE(c.ok() && **c.value == 7);
  EXPECT_FALSE(other.value);
  op.end(1, result<int>(8));
  w.run_for(1ms);
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(f.snapshot().led, 2u);
  EXPECT_EQ(f.snapshot().joined, 4u);
}

TEST(single_flight, C98_the_leaders_deadline_is_its_own) {
  world w;
  flights f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  auto const begin = w.now();
  told leader, follower;
  call(w, s, deadline(begin + 20ms), leader, std::string("a"));
  call(w, s, deadline(begin + 500ms), follower, std::string("a"));
  w.run_for(100ms);
  EXPECT_EQ(leader.code(), errc::deadline_exceeded);
  EXPECT_EQ(leader.at - begin, 20ms);
  EXPECT_EQ(leader.value->error().elapsed, 20ms);
  EXPECT_FALSE(follower.value);
  op.end(0, result<int>(7));
  w.run_for(1ms);
  EXPECT_TRUE(follower.ok());
  EXPECT_EQ(op.started(), 1u);
  EXPECT_EQ(op.deadlines[0].at(), begin + 1s) << "the flight has its own limit, not the leader's";
}

TEST(single_flight, C98_a_follower_with_an_earlier_deadline_returns_by_it_and_loads_nothing) {
  world w;
  flights f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  auto const begin = w.now();
  told leader, follower;
  call(w, s, {}, leader, std::string("a"));
  w.run_for(1ms);
  call(w, s, deadline(begin + 30ms), follower, std::string("a"));
  w.run_for(100ms);
  EXPECT_EQ(follower.at - begin, 30ms);
  EXPECT_EQ(follower.code(), errc::deadline_exceeded);
  EXPECT_EQ(op.started(), 1u);
  EXPECT_FALSE(leader.value);
  op.end(0, result<int>(1));
  w.run_for(1ms);
  EXPECT_TRUE(leader.ok());
}

TEST(single_flight, C98_a_cancelled_leader_leaves_the_flight_to_the_others) {
  world w;
  flights f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  asio::cancellation_signal stop;
  told leader, follower;
  s.async(asio::bind_cancellation_slot(stop.slot(), [&](result<int> r) { leader.value = std::move(r); }),
          w.get_executor(), deadline{}, std::string("a"));
  call(w, s, {}, follower, std::string("a"));
  w.run_for(1ms);
  stop.emit(asio::cancellation_type::terminal);
  w.run_for(1ms);
  EXPECT_EQ(leader.code(), errc::cancelled);
  EXPECT_FALSE(follower.value);
  op.end(0, result<int>(7));
  w.run_for(1ms);
  EXPECT_TRUE(follower.ok());
}

asio::awaitable<result<int>> sleepy(std::string const&, bool* stopped, deadline) {
  redoubt::timer clock(co_await asio::this_coro::executor);
  try {
    co_await clock.async_wait_until(clock.now() + 10s, asio::use_awaitable);
  } catch (boost::system::system_error const&) {
    *stopped = true;
  }
  result<int> out(1);
  co_return out;
}

TEST(single_flight, C98_the_load_is_stopped_when_the_last_waiter_leaves) {
  world w;
  flights f({.limit = 1s});
  bool stopped = false;
  auto const s = redoubt::start(sleepy) | one_per_key(f);
  told first, second;
  auto const begin = w.now();
  call(w, s, deadline(begin + 20ms), first, std::string("a"), &stopped);
  call(w, s, {}, second, std::string("a"), &stopped);
  w.run_for(999ms);
  EXPECT_TRUE(first.value);
  EXPECT_FALSE(stopped);
  w.run_for(2ms);
  EXPECT_EQ(second.code(), errc::limit_exceeded) << "the flight's own limit";
  EXPECT_EQ(second.at - begin, 1s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(f.snapshot().flights, 0u);
}

TEST(single_flight, C100_everybody_gets_the_failure_and_the_next_call_starts_anew) {
  world w;
  flights f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  told a, b, c;
  call(w, s, {}, a, std::string("k"));
  call(w, s, {}, b, std::string("k"));
  w.run_for(1ms);
  op.end(0, result<int>(test::failed(errc::connection_lost)));
  w.run_for(1ms);
  EXPECT_EQ(a.code(), errc::connection_lost);
  EXPECT_EQ(b.code(), errc::connection_lost);
  call(w, s, {}, c, std::string("k"));
  w.run_for(1ms);
  EXPECT_EQ(op.started(), 2u);
  op.end(1, result<int>(1));
  w.run_for(1ms);
  EXPECT_TRUE(c.ok());
}

TEST(single_flight, C100_a_load_that_throws_at_once_or_vanishes_leaves_nobody_waiting) {
  world w;
  flights f;
  static int loads = 0;
  loads = 0;
  auto const throwing = redoubt::start([](std::string const&, deadline) -> asio::awaitable<result<int>> {
                          ++loads;
                          throw std::runtime_error("no");
                          co_return result<int>(1);
                        }) |
                        one_per_key(f);
  told a, b;
  call(w, throwing, {}, a, std::string("k"));
  call(w, throwing, {}, b, std::string("k"));
  w.run_for(1ms);
  EXPECT_EQ(a.code(), errc::load_failed);
  EXPECT_EQ(b.code(), errc::load_failed);
  auto const before = loads;
  told anew;
  call(w, throwing, {}, anew, std::string("k"));
  w.run_for(1ms);
  EXPECT_EQ(loads, before + 1) << "the next call starts a new load";

  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  told c;
  call(w, s, {}, c, std::string("k"));
  w.run_for(1ms);
  op.drop(0);
  w.run_for(1ms);
  EXPECT_EQ(c.code(), errc::closed);
  EXPECT_EQ(f.snapshot().flights, 0u);
}

TEST(single_flight, keys_and_followers_are_bounded_and_refused_at_once) {
  world w;
  flights f({.name = "prices", .keys = 1, .followers = 1});
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f);
  told a, b, c, d;
  call(w, s, {}, a, std::string("k"));
  call(w, s, {}, b, std::string("k"));
  call(w, s, {}, c, std::string("k"));
  call(w, s, {}, d, std::string("other"));
  w.run_for(1ms);
  EXPECT_EQ(c.code(), errc::flight_full);
  EXPECT_EQ(d.code(), errc::flight_full);
  EXPECT_EQ(d.value->error().effect, effect::none);
  EXPECT_EQ(d.value->error().detail->note, "prices");
  op.end(0, result<int>(1));
  w.run_for(1ms);
  EXPECT_TRUE(a.ok() && b.ok());
}

TEST(single_flight, a_key_of_ones_own) {
  world w;
  redoubt::single_flight<int, int> f;
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) |
                 one_per_key(f, [](std::string const& text, int) { return static_cast<int>(text.size()); });
  told a, b;
  call(w, s, {}, a, std::string("abc"), 1);
  call(w, s, {}, b, std::string("xyz"), 2);
  w.run_for(1ms);
  EXPECT_EQ(op.started(), 1u);
  op.end(0, result<int>(1));
  w.run_for(1ms);
}

TEST(single_flight, one_load_per_key_however_many_threads_ask) {
  asio::thread_pool pool(4);
  flights f({.limit = 30s});
  std::atomic<int> running{0}, most{0}, answered{0};
  auto const s = redoubt::start([&](std::string const&, deadline) -> asio::awaitable<result<int>> {
                   most = std::max(most.load(), ++running);
                   redoubt::timer clock(co_await asio::this_coro::executor);
                   co_await clock.async_wait_until(clock.now() + 2ms, asio::use_awaitable);
                   --running;
                   result<int> out(1);
                   co_return out;
                 }) |
                 one_per_key(f);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        s.async([&](result<int> r) { answered += r.has_value() ? 1 : 0; }, pool.get_executor(), deadline{},
                std::string("k"));
      }
    });
  }
  for (auto& t : threads) t.join();
  pool.join();
  EXPECT_EQ(answered, 1000);
  EXPECT_EQ(most, 1);
  auto const n = f.snapshot();
  EXPECT_EQ(n.led + n.joined, 1000u);
  EXPECT_EQ(n.answered, 1000u);
}

TEST(single_flight, names_the_option_that_is_out_of_range) {
  EXPECT_THROW(flights({.keys = 0}), redoubt::option_error);
  EXPECT_THROW(flights({.limit = 0s}), redoubt::option_error);
}

/// Its copies throw when they are told to.
struct fragile {
  fragile() = default;
  explicit fragile(bool* t) : throws(t) {}
  fragile(fragile const& other) : throws(other.throws) {
    if (throws != nullptr && *throws) throw std::runtime_error("no copy");
  }
  fragile(fragile&&) noexcept = default;
  fragile& operator=(fragile const& other) {
    fragile copy(other);
    return *this = std::move(copy);
  }
  fragile& operator=(fragile&&) noexcept = default;
  friend bool operator==(fragile const&, fragile const&) { return true; }
  bool* throws = nullptr;
};

TEST(single_flight, C100_a_value_whose_copies_throw_leaves_nobody_waiting) {
  world w;
  redoubt::single_flight<int, fragile> f;
  std::function<void()> land;
  bool throws = false;
  auto const s = redoubt::start_plain<fragile>([&](redoubt::call_scope const&, auto done, int) {
                   auto kept = std::make_shared<decltype(done)>(std::move(done));
                   land = [kept, &throws] { std::move (*kept)(result<fragile>(fragile(&throws))); };
                 }) |
                 one_per_key(f);
  int well = 0, failed = 0;
  for (int i = 0; i < 5; ++i) {
    s.async(
        [&](result<fragile> r) {
          r ? ++well : ++failed;
          if (!r) {
            EXPECT_EQ(r.error().code, errc::load_failed);
          }
        },
        w.get_executor(), deadline{}, 1);
  }
  w.run_for(1ms);
  throws = true;
  std::exchange(land, nullptr)();
  w.run_for(1ms);
  EXPECT_EQ(well, 1) << "the one that needs no copy";
  EXPECT_EQ(failed, 4);
  EXPECT_EQ(f.snapshot().flights, 0u);
}

TEST(single_flight, what_the_application_does_for_its_key_happens_under_no_lock) {
  world w;
  flights f;
  test::manual_operation op;
  bool throws = false;
  auto const s = redoubt::start_plain<int>(op.operation()) | one_per_key(f, [&](std::string const& k) {
                   (void)f.snapshot();
                   if (throws) throw std::runtime_error("no key");
                   return k;
                 });
  told a, b, c;
  call(w, s, {}, a, std::string("k"));
  w.run_for(1ms);
  throws = true;
  call(w, s, {}, b, std::string("k"));
  w.run_for(1ms);
  EXPECT_EQ(b.code(), errc::load_failed);
  throws = false;
  call(w, s, {}, c, std::string("k"));
  w.run_for(1ms);
  op.end(0, result<int>(1));
  w.run_for(1ms);
  EXPECT_TRUE(a.ok());
  EXPECT_TRUE(c.ok());
  EXPECT_EQ(op.started(), 1u);
}

}  // namespace
