// SPDX-License-Identifier: BSL-1.0
//
// The price of the guards that are asked for each operation although they seldom act, next to one reading of
// the clock: compare with `steady_clock_now` of the same run.
#include <chrono>
#include <cstdint>

#include <benchmark/benchmark.h>
#include <redoubt/core/random_seeds.hpp>
#include <redoubt/fsm/retry_plan.hpp>
#include <redoubt/guard/adaptive_throttle.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/retry_budget.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/token_bucket.hpp>

#include <boost/asio/io_context.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;

void retry_steady_clock_now(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(retry_steady_clock_now);

failure refused() {
  failure f;
  f.code = errc::connection_refused;
  f.effect = effect::none;
  return f;
}

// A quota that is never reached: the state moves at each request, and time with it.
void token_bucket_granted(benchmark::State& state) {
  static token_bucket bucket({.rate = {.limit = 1'000'000'000, .per = 1s, .burst = 1000}});
  time_point now = std::chrono::steady_clock::now();
  for (auto _ : state) {
    now += 1us;
    auto turn = bucket.try_acquire(now);
    benchmark::DoNotOptimize(turn);
  }
}
BENCHMARK(token_bucket_granted)->ThreadRange(1, 8)->UseRealTime();

void token_bucket_refused(benchmark::State& state) {
  token_bucket bucket({.rate = {.limit = 1, .per = 24h}});
  time_point const now{1h};
  (void)bucket.try_acquire(now);
  for (auto _ : state) {
    auto turn = bucket.try_acquire(now);
    if (turn) state.SkipWithError("the quota was exceeded");
    benchmark::DoNotOptimize(turn);
  }
}
BENCHMARK(token_bucket_refused);

void adaptive_throttle_all_well(benchmark::State& state) {
  static adaptive_throttle throttle({.seed = 1});
  time_point const now{1h};
  for (auto _ : state) {
    auto entered = throttle.try_enter(now);
    benchmark::DoNotOptimize(entered);
    throttle.on_success(now);
  }
}
BENCHMARK(adaptive_throttle_all_well)->ThreadRange(1, 8)->UseRealTime();

void adaptive_throttle_shedding(benchmark::State& state) {
  adaptive_throttle throttle({.seed = 1});
  time_point const now{1h};
  for (int i = 0; i < 1000; ++i) throttle.on_failure(refused(), now);
  for (auto _ : state) {
    auto entered = throttle.try_enter(now);
    benchmark::DoNotOptimize(entered);
  }
  if (throttle.snapshot().refused == 0) state.SkipWithError("nothing was refused");
}
BENCHMARK(adaptive_throttle_shedding);

void retry_budget_success(benchmark::State& state) {
  static retry_budget budget;
  for (auto _ : state) budget.on_success();
}
BENCHMARK(retry_budget_success)->ThreadRange(1, 8)->UseRealTime();

void retry_budget_asked(benchmark::State& state) {
  retry_budget budget;
  auto const why = refused();
  time_point now{1h};
  for (auto _ : state) {
    now += 1ms;
    benchmark::DoNotOptimize(budget.try_take(why, now));
  }
}
BENCHMARK(retry_budget_asked);

// What a failure costs to decide on, jitter included.
void retry_plan_after_a_failure(benchmark::State& state) {
  retry_options const options{.retries = 1};
  random_seeds seeds(1);
  auto const why = refused();
  time_point const now{1h};
  for (auto _ : state) {
    auto random = seeds.next();
    retry_plan plan(options, now, {});
    benchmark::DoNotOptimize(plan.after(why, repeat::not_executed, now, random));
  }
}
BENCHMARK(retry_plan_after_a_failure);

// A stack whose operation succeeds at once: with a retry, and with all four guards of this file's kind.
struct succeeds {
  template <class Done>
  void operator()(call_scope const&, Done done) const {
    std::move(done)(result<int>(1));
  }
};

template <class Stack>
void run_stack(benchmark::State& state, Stack const& guarded) {
  boost::asio::io_context context;
  asio::any_io_executor const executor = context.get_executor();
  auto& clock = time_source::of(executor);
  int got = 0;
  for (auto _ : state) {
    call_scope const scope{executor, clock, {}, clock.now(), nullptr};
    guarded.begin(scope, [&got](result<int> r) { got += *r; });
    benchmark::DoNotOptimize(got);
  }
}

void retry_stack_bare(benchmark::State& state) { run_stack(state, start_plain<int>(succeeds{})); }
BENCHMARK(retry_stack_bare);

void retry_stack_one_attempt(benchmark::State& state) {
  retry_budget budget;
  retry again({.retries = 2}, budget, 1);
  run_stack(state, start_plain<int>(succeeds{}) | through(again, repeat::not_executed));
}
BENCHMARK(retry_stack_one_attempt);

void retry_stack_bucket_throttle_retry(benchmark::State& state) {
  token_bucket bucket({.rate = {.limit = 1'000'000'000, .per = 1s, .burst = 1000}});
  adaptive_throttle throttle({.seed = 1});
  retry_budget budget;
  retry again({.retries = 2}, budget, 1);
  run_stack(state, start_plain<int>(succeeds{}) | through(bucket) | through(throttle) |
                       through(again, repeat::not_executed));
}
BENCHMARK(retry_stack_bucket_throttle_retry);

}  // namespace
