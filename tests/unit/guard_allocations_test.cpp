// SPDX-License-Identifier: BSL-1.0
//
// What guards allocate on the paths that every call takes: nothing, once what is kept has been made.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>

#include "bench/throughput/allocations.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::breaker;
using redoubt::bulkhead;
using redoubt::call_scope;
using redoubt::result;
using redoubt::time_point;

time_point const start_time{1h};
result<int> const good(1);

/// What a thousand runs allocate after a hundred.
template <class Operation>
std::uint64_t allocations_of(Operation&& operation) {
  for (int i = 0; i < 100; ++i) operation();
  auto const before = bench::allocations();
  for (int i = 0; i < 1000; ++i) operation();
  return bench::allocations() - before;
}

struct guard_allocations : ::testing::Test {
  void SetUp() override {
    if (!bench::counts_allocations()) GTEST_SKIP() << "counts with the C library of GNU only";
  }

  /// Calls with whatever the operation does at once.
  template <class Stack>
  std::uint64_t allocations_of_calls(Stack const& s) {
    return allocations_of([&] {
      s.begin(
          call_scope::begin(executor, {}, nullptr), [](result<int> const&) {}, 1);
    });
  }

  asio::io_context io{};
  asio::any_io_executor executor = io.get_executor();
};

struct ends_at_once {
  template <class Done, class... Args>
  void operator()(call_scope const&, Done done, Args const&...) const {
    std::move(done)(result<int>(1));
  }
};

TEST_F(guard_allocations, the_count_itself_notices_an_allocation) {
  EXPECT_EQ(
      allocations_of([] {
        auto const p = std::make_unique<std::vector<int>>(1);
        asm volatile("" : : "r"(p.get()), "r"(p->data()) : "memory");  // or the compiler leaves them out
      }),
      2000u);
}

TEST_F(guard_allocations, a_closed_breaker) {
  for (auto const slow : {std::optional<double>(), std::optional<double>(0.8)}) {
    for (bool const ratio : {false, true}) {
      breaker::options o;
      if (ratio) o.settings.ratio = redoubt::breaker_ratio{.slow = slow, .slow_after = 1h};
      breaker b(o);
      auto now = start_time;
      EXPECT_EQ(allocations_of([&] {
                  now += 10ms;  // through the window's buckets
                  b.try_acquire(now)->record(good, now);
                }),
                0u);
    }
  }
}

TEST_F(guard_allocations, an_open_breakers_refusal) {
  breaker::options o;
  o.settings.consecutive = 1;
  o.settings.open = {.floor = 1h, .base = 1h, .cap = 1h};
  breaker b(o);
  b.try_acquire(start_time)
      ->record(redoubt::breaker_outcome::failure, redoubt::errc::connection_lost, start_time);
  EXPECT_EQ(allocations_of([&] { EXPECT_FALSE(b.try_acquire(start_time)); }), 0u);
}

TEST_F(guard_allocations, a_slot_taken_and_given_back) {
  bulkhead b({.slots = 2, .waiters = 0});
  EXPECT_EQ(allocations_of([&] { EXPECT_TRUE(b.try_acquire()); }), 0u);
  auto const one = b.try_acquire();
  auto const two = b.try_acquire();
  EXPECT_EQ(allocations_of([&] { EXPECT_FALSE(b.try_acquire()); }), 0u) << "nor does a refusal";
}

TEST_F(guard_allocations, a_follower_that_joins_a_flight_and_leaves_it) {
  redoubt::single_flight<std::uint64_t, int> flights({.limit = 1h});
  std::shared_ptr<void> up;  // an operation that does not end before the test does
  auto const s = redoubt::start_plain<int>([&up](call_scope const&, auto done, auto const&...) {
                   up = std::make_shared<decltype(done)>(std::move(done));
                 }) |
                 one_per_key(flights);
  s.begin(
      call_scope::begin(executor, {}, nullptr), [](result<int> const&) {}, std::uint64_t{1});
  EXPECT_EQ(allocations_of([&] {
              redoubt::cancel_point stop;
              s.begin(
                  call_scope::begin(executor, {}, &stop), [](result<int> const&) {}, std::uint64_t{1});
              stop.cancel();
            }),
            0u);
  EXPECT_EQ(flights.snapshot().joined, 1100u);
}

TEST_F(guard_allocations, a_stack_of_five_guards) {
  bulkhead slots({.slots = 64});
  breaker db, region;
  EXPECT_EQ(allocations_of_calls(redoubt::start_plain<int>(ends_at_once{}) | through(slots) |
                                 redoubt::limit(500ms) | through(db) | redoubt::at_rank<51>(through(region)) |
                                 redoubt::total(2s)),
            0u);
}

TEST_F(guard_allocations, a_stack_that_leads_a_flight) {
  bulkhead slots({.slots = 64});
  breaker db;
  redoubt::single_flight<int, int> flights;
  EXPECT_EQ(allocations_of_calls(redoubt::start_plain<int>(ends_at_once{}) | through(slots) |
                                 redoubt::limit(500ms) | through(db) | one_per_key(flights)),
            0u);
}

TEST_F(guard_allocations, many_threads_on_one_breaker_and_one_bulkhead) {
  breaker::options o;
  o.settings.ratio = redoubt::breaker_ratio{};
  breaker b(o);
  bulkhead slots({.slots = 2, .waiters = 0});
  std::vector<std::uint64_t> counted(4, 1);
  std::vector<std::thread> threads;
  for (auto& mine : counted) {
    threads.emplace_back([&] {
      mine = allocations_of([&] {
        b.try_acquire(start_time)->record(good, start_time);
        auto const held = slots.try_acquire();
      });
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(counted, std::vector<std::uint64_t>(4, 0));
}

}  // namespace
