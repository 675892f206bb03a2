// SPDX-License-Identifier: BSL-1.0
//
// The price of a deadline: entering one and taking it out again, among so many others; and the end of those
// that pass.
#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>
#include <redoubt/fsm/deadline_wheel.hpp>

namespace {

using namespace std::chrono_literals;

void deadline_wheel_add_remove(benchmark::State& state) {
  auto const others = static_cast<std::uint32_t>(state.range(0));
  redoubt::deadline_wheel wheel;
  redoubt::time_point const now{1h};
  for (std::uint32_t i = 0; i < others; ++i) wheel.add(i, now + 1ms * (i % 150), now);
  for (auto _ : state) {
    wheel.add(others, now + 100ms, now);
    wheel.remove(others);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(deadline_wheel_add_remove)->Arg(0)->Arg(64)->Arg(512);

void deadline_wheel_expire(benchmark::State& state) {
  constexpr std::uint32_t count = 512;
  redoubt::deadline_wheel wheel;
  redoubt::time_point now{1h};
  std::vector<std::uint32_t> expired;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < count; ++i) wheel.add(i, now + 100ms, now);
    now += 102ms;
    expired.clear();
    wheel.on_time(now, expired);
    if (expired.size() != count) state.SkipWithError("a deadline was missed");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * count));
}
BENCHMARK(deadline_wheel_expire);

void deadline_wheel_next_wakeup(benchmark::State& state) {
  redoubt::deadline_wheel wheel;
  redoubt::time_point const now{1h};
  wheel.add(0, now + 100ms, now);
  for (auto _ : state) benchmark::DoNotOptimize(wheel.next_wakeup());
}
BENCHMARK(deadline_wheel_next_wakeup);

}  // namespace
