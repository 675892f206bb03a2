// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/stack.hpp>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/time_limit.hpp>

#include "unit/guard_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::breaker;
using redoubt::bulkhead;
using redoubt::deadline;
using redoubt::errc;
using redoubt::result;
using redoubt::testing::world;
using test::told;

asio::awaitable<result<std::string>> load(std::string const& key, int times, deadline) {
  std::string out;
  for (int i = 0; i < times; ++i) out += key;
  result<std::string> value(out);
  co_return value;
}

struct guards {
  bulkhead slots{{.name = "db slots", .slots = 8, .max_wait = 300ms}};
  breaker db{{.name = "db"}};
  redoubt::single_flight<std::string, std::string> flights{{.name = "prices"}};

  [[nodiscard]] auto stack() {
    return redoubt::start(load) | through(slots) | redoubt::limit(500ms) | through(db) | redoubt::total(2s) |
           one_per_key(flights);
  }
};

TEST(guard_stack, a_coroutine_awaits_it) {
  world w;
  guards g;
  auto const s = g.stack();
  auto route = [&]() -> asio::awaitable<std::string> {
    std::string const key("ab");
    result<std::string> got = co_await s(w.get_executor(), deadline(w.now() + 1s), key, 2);
    co_return *got;
  };
  EXPECT_EQ(w.run(route()), "abab");
  EXPECT_EQ(g.slots.snapshot().used, 0u);
  EXPECT_EQ(g.db.snapshot().succeeded, 1u);
}

TEST(guard_stack, any_token_and_any_executor) {
  asio::thread_pool pool(2);
  guards g;
  auto const s = g.stack();
  auto future = s(pool.get_executor(), deadline{}, std::string("x"), 3)(asio::use_future);
  EXPECT_EQ(*future.get(), "xxx");
  auto on_strand = s(asio::make_strand(pool), deadline{}, std::string("y"), 1)(asio::use_future);
  EXPECT_EQ(*on_strand.get(), "y");
  pool.join();
}

TEST(guard_stack, a_call_may_begin_another_of_the_same_stack_as_it_ends) {
  world w;
  bulkhead slots({.slots = 1, .waiters = 0});
  breaker db;
  redoubt::single_flight<int, int> flights({.keys = 1, .followers = 1});
  auto const s = redoubt::start_plain<int>(
                     [](redoubt::call_scope const&, auto done, int) { std::move(done)(result<int>(1)); }) |
                 through(slots) | redoubt::limit(500ms) | through(db) | redoubt::total(2s) |
                 one_per_key(flights);
  asio::any_io_executor const executor = w.get_executor();
  int ended = 0;
  std::function<void(result<int>)> const again = [&](result<int> const& r) {
    EXPECT_TRUE(r) << r.error();
    if (++ended < 100) s.begin(redoubt::call_scope::begin(executor, {}, nullptr), again, 1);
  };
  s.begin(redoubt::call_scope::begin(executor, {}, nullptr), again, 1);
  EXPECT_EQ(ended, 100);
  EXPECT_EQ(slots.snapshot().used, 0u);
  EXPECT_EQ(flights.snapshot().led, 100u);
}

TEST(guard_stack, an_asio_operation_can_be_guarded) {
  world w;
  auto const s = redoubt::start_async<int>([&](int after, deadline, auto handler) {
                   auto clock = std::make_shared<redoubt::timer>(w.get_executor());
                   clock->async_wait_until(
                       w.now() + std::chrono::milliseconds(after),
                       asio::bind_cancellation_slot(
                           asio::get_associated_cancellation_slot(handler),
                           [clock, h = std::move(handler)](boost::system::error_code ec) mutable {
                             std::move(h)(ec ? result<int>(test::failed(errc::cancelled)) : result<int>(1));
                           }));
                 }) |
                 redoubt::limit(100ms);
  told quick, slow;
  call(w, s, {}, quick, 50);
  call(w, s, {}, slow, 500);
  w.run_for(200ms);
  EXPECT_TRUE(quick.ok());
  EXPECT_EQ(slow.code(), errc::limit_exceeded);
}

TEST(guard_stack, C100_an_asio_operation_that_throws_as_it_starts_is_a_failure) {
  world w;
  guards g;
  redoubt::single_flight<int, int> flights;
  bool kept = false;
  std::function<void()> later;
  auto const s = redoubt::start_async<int>([&](int, deadline, auto handler) {
                   if (kept) {
                     auto const h = std::make_shared<decltype(handler)>(std::move(handler));
                     later = [h] { std::move (*h)(result<int>(1)); };
                   }
                   throw std::runtime_error("no");
                 }) |
                 through(g.db) | one_per_key(flights);
  for (bool const first : {false, true}) {
    kept = first;
    told a, b;
    call(w, s, {}, a, 1);
    call(w, s, {}, b, 1);
    w.run_for(1ms);
    EXPECT_EQ(a.code(), errc::load_failed);
    EXPECT_EQ(b.code(), errc::load_failed);
    EXPECT_EQ(flights.snapshot().flights, 0u);
  }
  std::exchange(later, nullptr)();  // it was answered already
  w.run_for(1ms);
  EXPECT_EQ(g.db.snapshot().neutral, 2u);
}

// What an Asio operation leaves in its slot is good until it has ended.
TEST(guard_stack, A_12_a_request_to_stop_that_comes_with_the_end_does_not_reach_an_ended_operation) {
  world w;
  std::function<void()> end;
  bool late = false;
  auto const s = redoubt::start_async<int>([&](deadline, auto handler) {
                   auto const running = std::make_shared<bool>(true);
                   asio::get_associated_cancellation_slot(handler).assign(
                       [&late, alive = std::weak_ptr(running)](asio::cancellation_type) {
                         if (alive.expired()) late = true;
                       });
                   end = [running, h = std::make_shared<decltype(handler)>(std::move(handler))] {
                     auto const executor = asio::get_associated_executor(*h);
                     asio::post(executor, [running, h] { std::move (*h)(result<int>(1)); });
                   };
                 }) |
                 redoubt::limit(1s);
  asio::cancellation_signal stop;
  told a;
  s.async(asio::bind_cancellation_slot(stop.slot(), [&](result<int> r) { a.value = std::move(r); }),
          w.get_executor(), deadline());
  w.run_for(1ms);
  std::exchange(end, nullptr)();
  stop.emit(asio::cancellation_type::terminal);
  w.run_for(1ms);
  EXPECT_TRUE(a.value);
  EXPECT_FALSE(late);
}

// Asio's operations throw `operation_aborted` when they are cancelled; that is no failure of the
// application's.
TEST(guard_stack, A_12_a_coroutine_that_its_cancellation_ends_is_cancelled) {
  world w;
  guards g;
  auto const s = redoubt::start([&](bool aborts, deadline) -> asio::awaitable<result<int>> {
                   redoubt::timer clock(w.get_executor());
                   if (aborts) throw boost::system::system_error(asio::error::operation_aborted);
                   co_await clock.async_wait_until(w.now() + 1h, asio::use_awaitable);
                   result<int> out(1);
                   co_return out;
                 }) |
                 through(g.db);
  asio::cancellation_signal stop;
  told cancelled, aborted;
  s.async(asio::bind_cancellation_slot(stop.slot(), [&](result<int> r) { cancelled.value = std::move(r); }),
          w.get_executor(), deadline(), false);
  call(w, s, {}, aborted, true);
  w.run_for(1ms);
  EXPECT_EQ(aborted.code(), errc::load_failed) << "nobody has cancelled it";
  EXPECT_FALSE(cancelled.value);
  stop.emit(asio::cancellation_type::terminal);
  w.run_for(1ms);
  EXPECT_EQ(cancelled.code(), errc::cancelled);
  ASSERT_TRUE(cancelled.value);
  EXPECT_EQ(cancelled.value->error().effect, redoubt::effect::unknown);
}

TEST(guard_stack, C25_deadlines_at_the_ends_of_time) {
  world w;
  guards g;
  auto const s = g.stack();
  auto const ask = [&](redoubt::time_point by) {
    std::optional<result<std::string>> got;
    s.async([&](result<std::string> r) { got.emplace(std::move(r)); }, w.get_executor(), deadline(by),
            std::string("k"), 1);
    w.run_for(1ms);
    EXPECT_TRUE(got);
    return got ? *got : result<std::string>(test::failed(errc::unspecified));
  };
  for (auto const by : {redoubt::time_point::min(), redoubt::time_point::min() + 1ns, w.now()}) {
    auto const late = ask(by);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, errc::deadline_exceeded);
    EXPECT_EQ(late.error().effect, redoubt::effect::none);
  }
  for (auto const by : {redoubt::time_point::max(), redoubt::time_point::max() - 1ns}) EXPECT_TRUE(ask(by));
  EXPECT_EQ(g.slots.snapshot().used, 0u);
}

TEST(guard_stack, a_plan_prints_and_compares) {
  guards g, other;
  EXPECT_EQ(g.stack().plan(), other.stack().plan());
  EXPECT_EQ(g.stack().plan().text(), "single_flight \"prices\": 1024 keys, 4096 followers, 1000 ms\n"
                                     "total: 2000 ms\n"
                                     "breaker \"db\": 5 failures in a row\n"
                                     "limit: 500 ms\n"
                                     "bulkhead \"db slots\": 8 slots, 64 waiters, 300 ms wait\n"
                                     "worst case: 500 ms until the answer, 8 at once, 1 sent per call\n");
  auto const shorter = redoubt::start(load) | through(g.slots) | redoubt::limit(400ms);
  EXPECT_NE(shorter.plan(), g.stack().plan());
  auto const bare = redoubt::start(load);
  EXPECT_EQ(bare.plan().worst_case(), redoubt::call_figures{});
}

TEST(guard_stack, A_14_the_sum_of_a_routes_limits_is_checked_at_start_up) {
  guards g;
  auto const read = redoubt::start(load) | redoubt::limit(150ms);
  auto const from_database = redoubt::start(load) | through(g.slots) | redoubt::limit(500ms);
  auto const write = redoubt::start(load) | redoubt::limit(150ms);
  EXPECT_EQ(redoubt::worst_time_of(read.plan(), from_database.plan(), write.plan()), 800ms);
  EXPECT_NO_THROW(from_database.plan().require_within(500ms));
  try {
    from_database.plan().require_within(499ms);
    FAIL();
  } catch (redoubt::option_error const& e) {
    EXPECT_STREQ(e.what(), "plan: worst_time is \"500 ms\", must be at most 499 ms");
  }
  EXPECT_EQ(redoubt::worst_time_of(redoubt::start(load).plan(), read.plan()), redoubt::duration::max());
}

// A figure that does not hold would be worse than none.
TEST(guard_stack, A_14_a_plan_claims_no_bound_that_does_not_hold) {
  guards g;
  redoubt::retry again({.retries = 2, .total = 300ms});
  auto const unlimited = redoubt::start(load) | through(again, redoubt::repeat::idempotent);
  EXPECT_EQ(unlimited.plan().worst_case().worst_time, redoubt::duration::max())
      << "it ends no attempt that takes no notice of its deadline";
  auto const limited =
      redoubt::start(load) | redoubt::limit(100ms) | through(again, redoubt::repeat::idempotent);
  EXPECT_EQ(limited.plan().worst_case().worst_time, 300ms);

  auto const whole = redoubt::start(load) | one_per_key(g.flights);
  EXPECT_EQ(whole.plan().worst_case().concurrency, 1024u) << "a flight is counted until it really ends";
  auto const orphans = redoubt::start(load) | redoubt::limit(100ms) | one_per_key(g.flights);
  EXPECT_EQ(orphans.plan().worst_case().concurrency, ~std::uint64_t{0}) << "and what a limit leaves is not";
  auto const with_slots =
      redoubt::start(load) | through(g.slots) | redoubt::limit(100ms) | one_per_key(g.flights);
  EXPECT_EQ(with_slots.plan().worst_case().concurrency, 8u) << "except by its slot";
}

template <class Stack, class Layer>
constexpr bool composes = requires(Stack s, Layer l) { s | l; };

TEST(guard_stack, the_order_is_checked_and_the_escape_is_explicit) {
  guards g;
  auto const s = redoubt::start(load) | through(g.db);
  using stack = std::remove_const_t<decltype(s)>;
  static_assert(!composes<stack, redoubt::bulkhead_layer>);
  static_assert(!composes<stack, redoubt::breaker_layer>, "two of a kind need a place of their own");
  static_assert(composes<stack, decltype(redoubt::total(1s))>);
  static_assert(composes<stack, decltype(redoubt::at_rank<51>(through(g.db)))>);
  breaker outer({.name = "region"});
  auto const two = s | redoubt::at_rank<51>(through(outer));
  EXPECT_EQ(two.plan().layers.size(), 2u);
  EXPECT_EQ(two.plan().layers[1].name, "region");
}

TEST(guard_stack, C96_an_orphan_keeps_its_slot_until_it_really_ends) {
  world w;
  bulkhead slots({.slots = 2, .waiters = 0});
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | through(slots) | redoubt::limit(50ms);
  told a, b, c;
  call(w, s, {}, a);
  call(w, s, {}, b);
  w.run_for(100ms);
  EXPECT_EQ(a.code(), errc::limit_exceeded);
  EXPECT_EQ(slots.snapshot().used, 2u);
  call(w, s, {}, c);
  w.run_for(1ms);
  EXPECT_EQ(c.code(), errc::bulkhead_full) << "eight orphans and eight new ones would be sixteen";
  op.end(0, result<int>(1));
  EXPECT_EQ(slots.snapshot().used, 1u);
  op.end(1, result<int>(1));
  EXPECT_EQ(slots.snapshot().used, 0u);
}

// The slot comes free between the answer and the request to stop.
TEST(guard_stack, A_20_what_ended_in_the_queue_is_not_started_a_moment_later) {
  asio::io_context io;
  asio::any_io_executor const executor = io.get_executor();
  bulkhead slots({.slots = 1});
  auto held = slots.try_acquire();
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | through(slots) | redoubt::limit(1ms);
  std::optional<result<int>> got;
  s.begin(redoubt::call_scope::begin(executor, {}, nullptr), [&](result<int> r) {
    got.emplace(std::move(r));
    held->release();
    io.poll();
  });
  io.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().effect, redoubt::effect::none);
  EXPECT_EQ(op.started(), 0u);
  EXPECT_EQ(slots.snapshot().used, 0u);
}

TEST(guard_stack, a_waiter_gets_the_slot_and_the_time_that_is_left) {
  world w;
  bulkhead slots({.slots = 1, .waiters = 4});
  test::manual_operation op;
  auto const s = redoubt::start_plain<int>(op.operation()) | through(slots) | redoubt::limit(500ms);
  told a, b;
  auto const begin = w.now();
  call(w, s, {}, a);
  call(w, s, {}, b);
  w.run_for(200ms);
  EXPECT_EQ(op.started(), 1u);
  op.end(0, result<int>(1));
  w.run_for(1ms);
  ASSERT_EQ(op.started(), 2u);
  EXPECT_EQ(op.deadlines[1].at(), begin + 500ms);
  w.run_for(400ms);
  EXPECT_EQ(b.code(), errc::limit_exceeded) << "it had begun: this is the operation's fault";
  EXPECT_EQ(b.at - begin, 500ms);
  op.end(1, result<int>(1));
}

}  // namespace
