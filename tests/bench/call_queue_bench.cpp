// SPDX-License-Identifier: BSL-1.0
//
// A call through the queue, from its submission to its answer, with so many of them under way.
#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>
#include <redoubt/fsm/call_queue.hpp>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t command_bytes = 40;

void call_queue_submit_to_answer(benchmark::State& state) {
  auto const in_flight = static_cast<std::uint64_t>(state.range(0));
  redoubt::call_queue queue;
  redoubt::time_point now{1h};
  queue.on_ready(now);
  std::vector<std::uint64_t> batch;
  std::uint64_t wrong = 0;
  for (auto _ : state) {
    now += 50us;
    for (std::uint64_t i = 0; i < in_flight; ++i) {
      benchmark::DoNotOptimize(
          queue.submit({i, command_bytes, 1, redoubt::deadline(now + 150ms), false}, now));
    }
    batch.clear();
    queue.take_batch(1 << 20, now, batch);
    queue.on_written(in_flight * command_bytes, now);
    queue.on_bytes(now);
    for (auto const tag : batch) wrong += queue.on_reply().tag != tag;
    benchmark::DoNotOptimize(queue.next_wakeup());
  }
  if (wrong != 0 || !queue.idle()) state.SkipWithError("a reply went to the wrong call");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * in_flight));
}
BENCHMARK(call_queue_submit_to_answer)->Arg(1)->Arg(8)->Arg(64)->Arg(512);

}  // namespace
