// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/bulkhead.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

#include "virtual_time.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::bulkhead;
using redoubt::errc;
using permit = bulkhead::permit;

/// One request for a permit and what became of it.
struct request {
  std::optional<redoubt::result<permit>> got;
  redoubt::duration at{};
};

struct bulkhead_policy : ::testing::Test {
  test::virtual_context world;

  std::unique_ptr<request> ask(bulkhead& b, redoubt::deadline by = {}, asio::cancellation_slot slot = {}) {
    auto r = std::make_unique<request>();
    b.acquire(world.executor(), by,
              asio::bind_cancellation_slot(slot, [this, r = r.get()](redoubt::result<permit> p) {
                ASSERT_FALSE(r->got) << "completed twice";
                r->got.emplace(std::move(p));
                r->at = world.elapsed();
              }));
    EXPECT_FALSE(r->got) << "completed inside the call";
    return r;
  }
};

TEST_F(bulkhead_policy, A_26_refuses_the_extra_request_at_once) {
  bulkhead b{{.name = "db", .slots = 1, .waiters = 0}};
  auto const first = ask(b);
  auto const second = ask(b);
  world.settle();
  ASSERT_TRUE(*first->got);
  ASSERT_FALSE(*second->got);
  auto const& why = second->got->error();
  EXPECT_EQ(why.code, errc::bulkhead_full);
  EXPECT_EQ(why.effect, redoubt::effect::none);
  EXPECT_EQ(why.phase, redoubt::phase::queue);
  EXPECT_TRUE(why.rejected);
  EXPECT_EQ(why.group(), redoubt::failure_class::saturated);
  EXPECT_EQ(why.message(), "bulkhead full: db");
  EXPECT_EQ(b.snapshot().refused, 1u);
}

TEST_F(bulkhead_policy, a_waiter_gets_the_slot_that_comes_free) {
  bulkhead b{{.slots = 1}};
  auto const first = ask(b);
  auto const second = ask(b, world.in(100ms));
  world.run_for(30ms);
  EXPECT_FALSE(second->got);
  EXPECT_EQ(b.snapshot().waiting, 1u);
  first->got->value().release();
  world.settle();
  ASSERT_TRUE(second->got && *second->got);
  EXPECT_EQ(second->at, 30ms);
  EXPECT_EQ(b.snapshot().used, 1u);
  world.run();  // its timer has nothing to say any more
}

TEST_F(bulkhead_policy, A_20_a_wait_that_expires_is_our_saturation) {
  bulkhead b{{.slots = 1}};
  auto const first = ask(b);
  auto const second = ask(b, world.in(50ms));
  world.run();
  ASSERT_FALSE(*second->got);
  EXPECT_EQ(second->at, 50ms);
  auto const& why = second->got->error();
  EXPECT_EQ(why.code, errc::bulkhead_full);
  EXPECT_EQ(why.elapsed, 50ms);
  EXPECT_FALSE(why.rejected);
  EXPECT_EQ(why.group(), redoubt::failure_class::saturated);
  EXPECT_EQ(b.snapshot().expired, 1u);
}

TEST_F(bulkhead_policy, C25_max_wait_holds_without_a_deadline_and_a_passed_deadline_ends_at_once) {
  bulkhead b{{.slots = 1, .max_wait = 200ms}};
  auto const first = ask(b);
  auto const second = ask(b);
  world.run();
  EXPECT_EQ(second->at, 200ms);
  auto const third = ask(b, redoubt::deadline(world.now()));
  world.settle();
  EXPECT_EQ(third->got->error().code, errc::deadline_exceeded);
  EXPECT_EQ(third->got->error().effect, redoubt::effect::none);
}

TEST_F(bulkhead_policy, C96_abandoned_waiters_eat_no_permit) {
  bulkhead b{{.slots = 8, .waiters = 64}};
  std::vector<std::unique_ptr<request>> busy;
  std::vector<std::unique_ptr<request>> waiting;
  for (int i = 0; i < 8; ++i) busy.push_back(ask(b));
  for (int i = 0; i < 8; ++i) waiting.push_back(ask(b, world.in(50ms)));
  world.run_for(60ms);
  for (auto const& w : waiting) EXPECT_FALSE(*w->got);
  busy.clear();
  EXPECT_EQ(b.snapshot().used, 0u);
  auto const ninth = ask(b);
  world.settle();
  EXPECT_TRUE(*ninth->got);
  EXPECT_EQ(ninth->at, 60ms);
}

TEST_F(bulkhead_policy, cancellation_leaves_the_queue_and_eats_no_permit) {
  bulkhead b{{.slots = 1}};
  asio::cancellation_signal signal;
  auto const first = ask(b);
  auto const second = ask(b, world.in(1s), signal.slot());
  world.run_for(10ms);
  signal.emit(asio::cancellation_type::total);
  EXPECT_FALSE(second->got) << "never inside emit";
  world.settle();
  ASSERT_TRUE(second->got);
  EXPECT_EQ(second->got->error().code, errc::cancelled);
  EXPECT_EQ(second->got->error().elapsed, 10ms);
  first->got->value().release();
  EXPECT_EQ(b.snapshot().used, 0u);
  EXPECT_EQ(b.snapshot().withdrawn, 1u);
  signal.emit(asio::cancellation_type::total);  // long after: nothing happens
  world.run();
}

TEST_F(bulkhead_policy, a_permit_can_be_moved_and_released_once) {
  bulkhead b{{.slots = 2}};
  permit a = std::move(b.try_acquire().value());
  permit c = std::move(b.try_acquire().value());
  EXPECT_FALSE(b.try_acquire());
  permit d(std::move(a));
  EXPECT_FALSE(a);  // NOLINT: a moved-from permit holds nothing, that is the promise
  a.release();
  EXPECT_EQ(b.snapshot().used, 2u);
  d = std::move(c);  // what d held is released
  EXPECT_EQ(b.snapshot().used, 1u);
  d.release();
  d.release();
  EXPECT_EQ(b.snapshot().used, 0u);
}

TEST_F(bulkhead_policy, C80_its_destruction_ends_every_wait_and_permits_may_outlive_it) {
  auto b = std::make_unique<bulkhead>(bulkhead::options{.slots = 1});
  auto const first = ask(*b);
  auto const second = ask(*b, world.in(1s));
  world.settle();
  b.reset();
  world.settle();
  EXPECT_EQ(second->got->error().code, errc::closed);
  first->got->value().release();
}

TEST_F(bulkhead_policy, C80_permits_of_all_kinds_outlive_it) {
  auto b = std::make_unique<bulkhead>(bulkhead::options{.slots = 4});
  std::vector<permit> held;
  held.push_back(std::move(b->try_acquire().value()));
  held.push_back(b->acquire_at_once({redoubt::slot_use::fallback}));
  auto const waited = ask(*b);
  auto const never_taken = ask(*b);
  b.reset();
  world.settle();
  ASSERT_TRUE(*waited->got && *never_taken->got);
  permit moved(std::move(held[1]));
  held.clear();
  moved = std::move(waited->got->value());
  EXPECT_TRUE(moved);
}

TEST_F(bulkhead_policy, a_slot_granted_to_a_context_that_dies_comes_back) {
  bulkhead b{{.slots = 1}};
  auto const first = ask(b);
  world.settle();
  {
    test::virtual_context other;
    b.acquire(other.executor(), {}, [](redoubt::result<permit>) { FAIL(); });
    other.settle();
    EXPECT_EQ(b.snapshot().waiting, 1u);
    first->got->value().release();  // granted, but `other` never runs again
    EXPECT_EQ(b.snapshot().used, 1u);
  }
  EXPECT_EQ(b.snapshot().used, 0u);
}

// Guards are often made before the context, and so outlive it.
TEST_F(bulkhead_policy, C80_a_waiter_whose_context_dies_leaves_the_queue) {
  for (bool const begun : {false, true}) {
    SCOPED_TRACE(begun);
    bulkhead b{{.slots = 1}};
    auto held = b.try_acquire();
    {
      asio::io_context other;
      test::virtual_context third;
      for (asio::any_io_executor const& where :
           {asio::any_io_executor(other.get_executor()), third.executor()}) {
        b.acquire(where, {}, [](redoubt::result<permit>) { FAIL(); });
      }
      if (begun) other.poll(), third.settle();
      EXPECT_EQ(b.snapshot().waiting, 2u);
    }
    EXPECT_EQ(b.snapshot().waiting, 0u);
    EXPECT_EQ(b.snapshot().withdrawn, 2u);
    held->release();
    EXPECT_EQ(b.snapshot().used, 0u);
  }
}

TEST_F(bulkhead_policy, works_in_a_coroutine) {
  bulkhead b{{.slots = 1}};
  auto const one = [&]() -> asio::awaitable<int> {
    auto const executor = co_await asio::this_coro::executor;
    auto const held = co_await b.acquire(executor);
    co_return held ? 1 : 0;
  };
  EXPECT_EQ(world.run(one()), 1);
  EXPECT_EQ(world.run(one()), 1);
}

TEST_F(bulkhead_policy, options_name_the_bad_field) {
  auto const field = [](bulkhead::options o) -> std::string {
    try {
      bulkhead b{std::move(o)};
    } catch (redoubt::option_error const& e) {
      return e.field();
    }
    return "accepted";
  };
  EXPECT_EQ(field({.slots = 0}), "slots");
  EXPECT_EQ(field({.waiters = 65537}), "waiters");
  EXPECT_EQ(field({.max_wait = 0ms}), "max_wait");
  EXPECT_EQ(field({}), "accepted");
}

// Real threads, no waiting for time: every slot is given and taken back, and never more than four at once.
TEST(bulkhead_threads, C78_many_threads_share_it) {
  bulkhead b{{.slots = 4, .waiters = 10'000, .max_wait = 1min}};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  {
    asio::thread_pool pool(4);
    for (int i = 0; i < 2'000; ++i) {
      b.acquire(pool.get_executor(), {}, [&](redoubt::result<permit> p) {
        ASSERT_TRUE(p) << p.error();
        int const now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
        ++done;
      });
    }
    pool.join();
  }
  EXPECT_EQ(done, 2'000);
  EXPECT_LE(most, 4);
  EXPECT_EQ(b.snapshot().used, 0u);
  EXPECT_EQ(b.snapshot().granted, 2'000u);
}

// Whoever comes last, a permit or the bulkhead, ends what they share: once.
TEST(bulkhead_threads, C80_it_is_destroyed_while_permits_are_given_back) {
  for (int round = 0; round < 300; ++round) {
    auto b = std::make_unique<bulkhead>(bulkhead::options{.slots = 3});
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&ready, held = b->acquire_at_once()]() mutable {
        EXPECT_TRUE(held);
        ++ready;
        while (ready < 4) std::this_thread::yield();
        held.release();
      });
    }
    while (ready < 3) std::this_thread::yield();
    ++ready;
    b.reset();
    for (auto& t : threads) t.join();
  }
}

TEST(bulkhead_threads, completes_a_future) {
  bulkhead b{{.slots = 1}};
  asio::thread_pool pool(1);
  auto const held = b.acquire(pool.get_executor(), {}, asio::use_future).get();
  EXPECT_TRUE(held);
  pool.join();
}

}  // namespace
