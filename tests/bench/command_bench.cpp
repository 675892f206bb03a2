// SPDX-License-Identifier: BSL-1.0
//
// Commands to bytes.
#include <string>

#include <benchmark/benchmark.h>
#include <redoubt/resp/command.hpp>

namespace {

void command_get(benchmark::State& state) {
  std::string const key = "bench:key:1000000";
  for (auto _ : state) {
    redoubt::command const c("GET", key);
    benchmark::DoNotOptimize(c.wire());
  }
}
BENCHMARK(command_get);

void command_set(benchmark::State& state) {
  std::string const key = "bench:key:1000000";
  std::string const value(static_cast<std::size_t>(state.range(0)), 'v');
  for (auto _ : state) {
    redoubt::command const c("SET", key, value, "PX", 60'000);
    benchmark::DoNotOptimize(c.wire());
  }
}
BENCHMARK(command_set)->Arg(100)->Arg(10'000);

void command_may_share_connection(benchmark::State& state) {
  redoubt::command const c("GET", "bench:key:1000000");
  for (auto _ : state) benchmark::DoNotOptimize(redoubt::cannot_share_connection(c));
}
BENCHMARK(command_may_share_connection);

}  // namespace
