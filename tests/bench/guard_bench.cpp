// SPDX-License-Identifier: BSL-1.0
//
// What the guards cost, in units of one reading of the steady clock, measured in the same run around each
// benchmark: a guard that works with time has to read it once, so this is the unit that means the same on
// every machine. `clocks` is the figure, `target` what it may be; `allocations` is per operation.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>

#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>

#include "throughput/allocations.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker;
using redoubt::breaker_outcome;
using redoubt::bulkhead;
using redoubt::call_scope;
using redoubt::errc;
using redoubt::result;
using redoubt::time_point;
using clock_type = std::chrono::steady_clock;

/// Nanoseconds that the calling thread has spent on a processor: what else runs on the machine is not in it.
double spent() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// Nanoseconds of one reading of the clock.
double clock_cost() {
  constexpr int readings = 50'000;
  auto const begin = spent();
  for (int i = 0; i < readings; ++i) benchmark::DoNotOptimize(clock_type::now());
  return (spent() - begin) / readings;
}

/// As long as a program has one thread only, shared pointers count without atomic operations: that is no
/// service, and not what is to be measured.
void have_had_threads() {
  static bool const done = (std::thread([] {}).join(), true);
  benchmark::DoNotOptimize(done);
}

/// Runs `operation` and reports it in clock readings. The clock is measured before and after, and the mean
/// taken.
template <class Operation>
void measure(benchmark::State& state, double target, Operation&& operation) {
  have_had_threads();
  for (int i = 0; i < 100; ++i) operation();  // what is allocated once and kept
  auto const unit_before = clock_cost();
  auto const allocations = bench::allocations();
  auto const begin = spent();
  for (auto _ : state) operation();
  auto const taken = spent() - begin;
  auto const allocated = static_cast<double>(bench::allocations() - allocations);
  auto const unit = (unit_before + clock_cost()) / 2;
  auto const operations = static_cast<double>(state.iterations());
  auto const mean = benchmark::Counter::kAvgThreads;
  state.counters["clocks"] = benchmark::Counter(taken / operations / unit, mean);
  state.counters["clock_ns"] = benchmark::Counter(unit, mean);
  if (target > 0) state.counters["target"] = benchmark::Counter(target, mean);
  if (bench::counts_allocations()) {
    state.counters["allocations"] = benchmark::Counter(allocated / operations, mean);
  }
}

auto const now = [] { return clock_type::now(); };
result<int> const good(1);

breaker::options windowed(std::optional<double> slow = std::nullopt) {
  breaker::options o;
  o.settings.ratio = redoubt::breaker_ratio{.slow = slow, .slow_after = std::chrono::hours(1)};
  return o;
}

void clock_read(benchmark::State& state) {
  measure(state, 0, [] { benchmark::DoNotOptimize(clock_type::now()); });
}
BENCHMARK(clock_read);

void breaker_closed(benchmark::State& state) {
  static breaker b;
  measure(state, 2.0, [] {
    auto permit = b.try_acquire_by(now);
    permit->record_by(good, now);
  });
}
BENCHMARK(breaker_closed)->Threads(1)->Threads(8)->UseRealTime();

// The clock is read when the call ends.
void breaker_closed_with_a_window(benchmark::State& state) {
  static breaker b(windowed());
  measure(state, 2.0, [] {
    auto permit = b.try_acquire_by(now);
    permit->record_by(good, now);
  });
}
BENCHMARK(breaker_closed_with_a_window)->Threads(1)->Threads(8)->UseRealTime();

// With slow calls: it is read when the call begins, too.
void breaker_closed_with_slow_calls(benchmark::State& state) {
  static breaker b(windowed(0.8));
  measure(state, 0, [] {
    auto permit = b.try_acquire_by(now);
    permit->record_by(good, now);
  });
}
BENCHMARK(breaker_closed_with_slow_calls)->Threads(1)->Threads(8)->UseRealTime();

// The same where the caller has read the clock already, as a stack has.
void breaker_closed_with_slow_calls_in_a_stack(benchmark::State& state) {
  static breaker b(windowed(0.8));
  measure(state, 0, [known = clock_type::now()] {
    auto permit = b.try_acquire(known);
    permit->record_by(good, now);
  });
}
BENCHMARK(breaker_closed_with_slow_calls_in_a_stack)->Threads(1)->Threads(8)->UseRealTime();

std::unique_ptr<breaker> opened() {
  breaker::options o;
  o.settings.consecutive = 1;
  o.settings.open = {.floor = 1h, .base = 1h, .cap = 1h};
  auto b = std::make_unique<breaker>(o);
  b->try_acquire(clock_type::now())
      ->record(breaker_outcome::failure, errc::connection_lost, clock_type::now());
  return b;
}

void breaker_open(benchmark::State& state) {
  static auto const b = opened();
  measure(state, 1.5, [] {
    auto const refused = b->try_acquire_by(now);
    if (refused) std::abort();
    benchmark::DoNotOptimize(refused);
  });
}
BENCHMARK(breaker_open)->Threads(1)->Threads(8)->UseRealTime();

void bulkhead_acquire_release(benchmark::State& state) {
  static bulkhead b({.slots = 64});
  measure(state, 1.5, [] {
    auto permit = b.try_acquire();
    benchmark::DoNotOptimize(permit);
  });
}
BENCHMARK(bulkhead_acquire_release)->Threads(1)->Threads(8)->UseRealTime();

/// An operation that ends at once.
struct ends_at_once {
  template <class Done, class... Args>
  void operator()(call_scope const&, Done done, Args const&...) const {
    std::move(done)(result<int>(1));
  }
};

/// An operation that never ends.
struct stays_up {
  template <class Done, class... Args>
  void operator()(call_scope const&, Done done, Args const&...) const {
    static auto const kept = std::make_shared<Done>(std::move(done));
  }
};

struct ignore {
  void operator()(result<int> r) const { benchmark::DoNotOptimize(r); }
};

call_scope scope_of(boost::asio::any_io_executor const& executor, redoubt::cancel_point* stop = nullptr) {
  return call_scope::begin(executor, {}, stop);
}

void bare_call(benchmark::State& state) {
  boost::asio::io_context io;
  boost::asio::any_io_executor const executor = io.get_executor();
  auto const s = redoubt::start_plain<int>(ends_at_once{});
  measure(state, 0, [&] { s.begin(scope_of(executor), ignore{}, 1); });
}
BENCHMARK(bare_call);

// Five guards: a slot, the limit of the attempt, the breaker of the dependency and of its region, the limit
// of all. The bare call with its one clock reading is to be taken off.
void stack_of_five(benchmark::State& state) {
  static boost::asio::io_context io;
  static boost::asio::any_io_executor const executor = io.get_executor();
  static bulkhead slots({.slots = 64});
  static breaker db, region;
  static auto const s = redoubt::start_plain<int>(ends_at_once{}) | through(slots) | redoubt::limit(500ms) |
                        through(db) | redoubt::at_rank<51>(through(region)) | redoubt::total(2s);
  measure(state, 8 + 1.5, [&] { s.begin(scope_of(executor), ignore{}, 1); });
}
BENCHMARK(stack_of_five)->Threads(1)->Threads(8)->UseRealTime();

// A call that leads a flight which nobody joins, around a slot, a limit and a breaker.
void stack_with_a_flight(benchmark::State& state) {
  static boost::asio::io_context io;
  static boost::asio::any_io_executor const executor = io.get_executor();
  static bulkhead slots({.slots = 64});
  static breaker db;
  static redoubt::single_flight<std::uint64_t, int> flights;
  static auto const s = redoubt::start_plain<int>(ends_at_once{}) | through(slots) | redoubt::limit(500ms) |
                        through(db) | one_per_key(flights);
  static std::atomic<std::uint64_t> keys{0};
  auto const key = keys.fetch_add(1);  // each thread its own
  measure(state, 0, [&] { s.begin(scope_of(executor), ignore{}, key); });
}
BENCHMARK(stack_with_a_flight)->Threads(1)->Threads(8)->UseRealTime();

// A follower joins a flight and leaves it with an answer: here by its own cancellation, because a flight
// lands once.
void single_flight_follower(benchmark::State& state) {
  static boost::asio::io_context io;
  static boost::asio::any_io_executor const executor = io.get_executor();
  static redoubt::single_flight<std::uint64_t, int> flights({.limit = 1h});
  static auto const s = redoubt::start_plain<int>(stays_up{}) | one_per_key(flights);
  static bool const up = (s.begin(scope_of(executor), ignore{}, std::uint64_t{1}), true);
  benchmark::DoNotOptimize(up);
  measure(state, 40, [&] {
    redoubt::cancel_point stop;
    s.begin(scope_of(executor, &stop), ignore{}, std::uint64_t{1});
    stop.cancel();
  });
}
BENCHMARK(single_flight_follower)->Threads(1)->Threads(8)->UseRealTime();

// A leader and a hundred followers, all answered by the landing; per caller.
void single_flight_of_a_hundred(benchmark::State& state) {
  boost::asio::io_context io;
  boost::asio::any_io_executor const executor = io.get_executor();
  redoubt::single_flight<std::uint64_t, int> flights;
  std::unique_ptr<std::function<void()>> land;
  auto const s = redoubt::start_plain<int>([&](call_scope const&, auto done, auto const&...) {
                   auto kept = std::make_shared<decltype(done)>(std::move(done));
                   land = std::make_unique<std::function<void()>>([kept] { (*kept)(result<int>(1)); });
                 }) |
                 one_per_key(flights);
  measure(state, 101 * 40, [&] {
    for (int i = 0; i < 101; ++i) s.begin(scope_of(executor), ignore{}, std::uint64_t{1});
    (*land)();
    io.poll();
    io.restart();
  });
}
BENCHMARK(single_flight_of_a_hundred);

}  // namespace
