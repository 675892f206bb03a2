// SPDX-License-Identifier: BSL-1.0
//
// Stacks used from many threads at once, over a pool: for the thread sanitizer, and for the sums that must
// come out right.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::deadline;
using redoubt::result;

/// Ends at once, later, too late, or badly, by the number it is given.
asio::awaitable<result<int>> work(int number, deadline) {
  redoubt::timer clock(co_await asio::this_coro::executor);
  co_await asio::this_coro::throw_if_cancelled(false);
  boost::system::error_code ec;
  auto const pause = std::chrono::microseconds(number % 7 * 200);
  if (pause > 0us) {
    co_await clock.async_wait_until(clock.now() + pause, asio::redirect_error(asio::use_awaitable, ec));
  }
  redoubt::failure f;
  f.code = redoubt::errc::connection_lost;
  auto out = number % 11 == 0 ? result<int>(f) : result<int>(number);
  co_return out;
}

TEST(guard_threads, every_call_is_answered_once_and_nothing_is_left_held) {
  asio::thread_pool pool(4);
  redoubt::bulkhead slots({.slots = 4, .waiters = 64, .max_wait = 50ms});
  redoubt::breaker::options o;
  o.settings.consecutive = 3;
  o.settings.ratio =
      redoubt::breaker_ratio{.failures = 0.9, .slow_after = 1h, .minimum_calls = 5, .window = 10ms};
  o.settings.open = {.floor = 1ms, .base = 1ms, .cap = 2ms};
  o.settings.ramp = redoubt::breaker_ramp{.start = 0.5, .length = 1ms};
  redoubt::breaker db(o);
  redoubt::time_limit limit({.limit = 1ms});
  redoubt::single_flight<int, int> flights({.limit = 5s});
  auto const s = redoubt::start(work) | through(slots) | through(limit) | through(db) | redoubt::total(1s) |
                 one_per_key(flights, [](int n) { return n % 5; });

  constexpr int threads = 4, calls = 500;
  std::atomic<int> answered{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        auto const number = i * threads + t;
        auto const by = number % 3 == 0 ? deadline(std::chrono::steady_clock::now() + 700us) : deadline();
        if (number % 4 != 0) {
          s.async([&](result<int>) { ++answered; }, pool.get_executor(), by, number);
          continue;
        }
        // Cancelled on the strand where the call's slot lives, as Asio wants it.
        auto const strand = asio::make_strand(pool);
        auto stop = std::make_shared<asio::cancellation_signal>();
        asio::post(strand, [&, strand, stop, by, number] {
          s.async(asio::bind_cancellation_slot(
                      stop->slot(), asio::bind_executor(strand, [&, stop](result<int>) { ++answered; })),
                  strand, by, number);
          asio::post(strand, [stop] { stop->emit(asio::cancellation_type::terminal); });
        });
      }
    });
  }
  callers.emplace_back([&] {
    for (int i = 0; i < 200; ++i) {
      slots.resize({.slots = 1 + static_cast<std::uint32_t>(i % 6), .waiters = 64});
      if (i % 50 == 0) db.configure(db.settings());
      if (i % 20 == 0)
        (void)db.advise_open(std::chrono::steady_clock::now() + 1ms, std::chrono::steady_clock::now());
      (void)db.snapshot();
      (void)limit.snapshot();
      std::this_thread::sleep_for(100us);
    }
  });
  for (auto& c : callers) c.join();
  pool.join();
  EXPECT_EQ(answered, threads * calls);
  EXPECT_EQ(slots.snapshot().used, 0u);
  EXPECT_EQ(slots.snapshot().waiting, 0u);
  EXPECT_EQ(limit.snapshot().orphans, 0u);
  auto const f = flights.snapshot();
  EXPECT_EQ(f.flights, 0u);
  EXPECT_EQ(f.led + f.joined, f.answered + f.expired + f.left);
}

// An operation may end inside its own start, on another thread meanwhile, or never: each call under a limit
// is answered at most once and then gone.
TEST(guard_threads, a_limit_whose_operation_ends_while_it_is_being_started) {
  asio::thread_pool pool(2);
  asio::any_io_executor const executor = pool.get_executor();
  redoubt::time_limit inner({.limit = 1h}), outer({.limit = 1h});
  auto const s = redoubt::start_plain<int>([&](redoubt::call_scope const&, auto done, int how) {
                   if (how == 0) return std::move(done)(result<int>(1));
                   if (how == 1) return;  // dropped
                   asio::post(pool, [done = std::move(done)]() mutable { std::move(done)(result<int>(1)); });
                   if (how == 2) std::this_thread::yield();
                 }) |
                 through(inner) | redoubt::at_rank<45>(through(outer));
  constexpr int threads = 3, calls = 3000;
  auto const alive = std::make_shared<int>(0);
  std::atomic<int> answered{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < calls; ++i) {
        s.begin(
            redoubt::call_scope::begin(executor, {}, nullptr),
            [&answered, alive](result<int> const& r) { answered += r.has_value() ? 1 : 1'000'000; }, i % 4);
      }
    });
  }
  for (auto& c : callers) c.join();
  pool.join();
  EXPECT_EQ(answered, threads * calls / 4 * 3);
  EXPECT_EQ(inner.snapshot().in_time, std::uint64_t(answered));
  EXPECT_EQ(outer.snapshot().in_time, std::uint64_t(answered));
  EXPECT_EQ(inner.snapshot().orphans + outer.snapshot().orphans, 0u);
  EXPECT_EQ(alive.use_count(), 1) << "every call is gone, with what it held";
}

// The trial is one call whoever asks at once: the switch and the permit are one step.
TEST(guard_threads, C87_ten_thousand_callers_of_eight_threads_and_one_call_to_the_backend) {
  asio::thread_pool pool(2);
  asio::any_io_executor const executor = pool.get_executor();
  redoubt::breaker::options o;
  o.settings.consecutive = 1;
  o.settings.open = {.floor = 1ms, .base = 1ms, .cap = 1ms};
  o.settings.trial_limit = 10min;  // the sanitizers may take their time
  redoubt::breaker db(o);
  std::atomic<int> started{0}, refused{0}, well{0};
  std::mutex mutex;
  std::function<void()> end_trial;
  auto const s = redoubt::start_plain<int>([&](redoubt::call_scope const&, auto done, int) {
                   ++started;
                   auto const kept = std::make_shared<decltype(done)>(std::move(done));
                   std::scoped_lock const lock(mutex);
                   end_trial = [kept] { std::move (*kept)(result<int>(1)); };
                 }) |
                 through(db);
  db.try_acquire(executor)->record(redoubt::breaker_outcome::failure, redoubt::errc::connection_lost,
                                   std::chrono::steady_clock::now());
  std::this_thread::sleep_for(2ms);
  std::atomic<bool> go{false};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 1250; ++i) {
        s.async(
            [&](result<int> const& r) {
              if (r) {
                ++well;
              } else if (r.error().code == redoubt::errc::breaker_open) {
                ++refused;
              }
            },
            executor, deadline(), i);
      }
    });
  }
  go = true;
  for (auto& c : callers) c.join();
  EXPECT_EQ(started, 1);
  std::exchange(end_trial, nullptr)();
  pool.join();
  EXPECT_EQ(refused, 9999);
  EXPECT_EQ(well, 1);
  EXPECT_EQ(db.snapshot().trials, 1u);
  EXPECT_EQ(db.snapshot().phase, redoubt::breaker_phase::closed);
}

TEST(guard_threads, C96_slots_taken_and_given_back_without_a_lock_add_up) {
  redoubt::bulkhead slots({.slots = 3, .waiters = 0, .shares = {.fallback = 1}});
  std::atomic<int> used{0}, most{0}, fallback{0}, most_fallback{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      redoubt::slot_class const what{t % 2 ? redoubt::slot_use::fallback : redoubt::slot_use::normal};
      for (int i = 0; i < 5000; ++i) {
        auto held = slots.try_acquire(what);
        if (!held) continue;
        auto raise = [](std::atomic<int>& to, int seen) {
          for (int m = to; seen > m && !to.compare_exchange_weak(m, seen);) {
          }
        };
        raise(most, ++used);
        if (t % 2) raise(most_fallback, ++fallback);
        if (i % 64 == 0) std::this_thread::yield();
        if (t % 2) --fallback;
        --used;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_LE(most, 3);
  EXPECT_LE(most_fallback, 1);
  EXPECT_EQ(slots.snapshot().used, 0u);
}

// Slots come free, waiters leave and sizes change at the same moments; a wake-up that is lost would leave
// somebody waiting until the end of `max_wait`.
TEST(guard_threads, C96_waiters_that_leave_while_slots_and_sizes_change) {
  asio::thread_pool pool(3);
  redoubt::bulkhead slots({.slots = 2, .waiters = 8192, .max_wait = 1h});
  constexpr int threads = 3, calls = 1500;
  std::atomic<int> granted{0}, cancelled{0}, other{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        redoubt::slot_class const what{i % 3 == 0 ? redoubt::slot_use::fallback : redoubt::slot_use::normal,
                                       static_cast<redoubt::slot_priority>((i + t) % 3)};
        auto const strand = asio::make_strand(pool);
        auto stop = std::make_shared<asio::cancellation_signal>();
        auto ended = [&, stop](result<redoubt::bulkhead::permit> held) {
          if (held) {
            ++granted;
            asio::post(pool, [held = std::move(*held)] {});  // given back by another thread
          } else {
            ++(held.error().code == redoubt::errc::cancelled ? cancelled : other);
          }
        };
        asio::post(strand, [&, strand, stop, what, i, ended = std::move(ended)]() mutable {
          slots.acquire_as(
              what, strand, {},
              asio::bind_cancellation_slot(stop->slot(), asio::bind_executor(strand, std::move(ended))));
          if (i % 2) asio::post(strand, [stop] { stop->emit(asio::cancellation_type::terminal); });
        });
      }
    });
  }
  std::thread operation([&] {
    for (std::uint32_t i = 0; !done; ++i) {
      redoubt::bulkhead_limits limits{.slots = 1 + i % 4, .waiters = 8192};
      if (i % 3 == 0) limits.shares = {.normal = 1, .fallback = 1, .normal_priority = 0.5};
      slots.resize(limits);
      (void)slots.snapshot();
      std::this_thread::yield();
    }
  });
  for (auto& c : callers) c.join();
  pool.join();
  done = true;
  operation.join();
  EXPECT_EQ(granted + cancelled, threads * calls);
  EXPECT_EQ(other, 0);
  auto const s = slots.snapshot();
  EXPECT_EQ(s.used + s.waiting, 0u);
  EXPECT_EQ(s.withdrawn, std::uint64_t(cancelled));
}

// What says that nothing was started must be right, whatever slot came free at the same moment: a retry
// around it repeats.
TEST(guard_threads, A_20_a_call_that_ended_in_the_queue_was_never_started) {
  asio::thread_pool pool(3);
  redoubt::bulkhead slots({.slots = 2, .waiters = 65536, .max_wait = 1h});
  redoubt::time_limit in_time({.limit = 300us});
  constexpr int calls = 4000;
  std::vector<std::atomic<int>> started(calls), ended_in_queue(calls);
  auto const s = redoubt::start_plain<int>([&](redoubt::call_scope const&, auto done, int number) {
                   ++started[static_cast<std::size_t>(number)];
                   asio::post(pool, [done = std::move(done)]() mutable { std::move(done)(result<int>(1)); });
                 }) |
                 through(slots) | through(in_time);
  std::atomic<int> answered{0};
  for (int i = 0; i < calls; ++i) {
    asio::post(pool, [&, i] {
      s.async(
          [&, i](result<int> const& r) {
            ++answered;
            if (!r && r.error().effect == redoubt::effect::none)
              ++ended_in_queue[static_cast<std::size_t>(i)];
          },
          pool.get_executor(), deadline(), i);
    });
  }
  pool.join();
  EXPECT_EQ(answered, calls);
  EXPECT_EQ(slots.snapshot().used, 0u);
  EXPECT_EQ(in_time.snapshot().orphans, 0u);
  int both = 0;
  for (std::size_t i = 0; i < calls; ++i) both += started[i] > 0 && ended_in_queue[i] > 0 ? 1 : 0;
  EXPECT_EQ(both, 0);
}

}  // namespace
