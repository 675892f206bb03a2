// SPDX-License-Identifier: BSL-1.0
//
// Bytes to replies, in pieces of the size that the connection reads.
#include <algorithm>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>
#include <redoubt/resp/reader.hpp>

namespace {

constexpr std::size_t piece = 16 * 1024;

/// Feeds `count` copies of `one` and takes every reply.
void read_all(benchmark::State& state, std::string_view one, std::size_t count) {
  std::string stream;
  for (std::size_t i = 0; i < count; ++i) stream.append(one);
  redoubt::reader reader;
  std::size_t replies = 0;
  for (auto _ : state) {
    for (std::string_view rest = stream; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
      reader.feed(rest.substr(0, piece));
      while (auto r = reader.next()) {
        benchmark::DoNotOptimize(*r);
        ++replies;
      }
    }
  }
  if (reader.error() != redoubt::errc::unspecified) state.SkipWithError("the stream was refused");
  state.SetItemsProcessed(static_cast<std::int64_t>(replies));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * stream.size()));
}

std::string bulk(std::size_t size) {
  return '$' + std::to_string(size) + "\r\n" + std::string(size, 'v') + "\r\n";
}

void reader_bulk_string(benchmark::State& state) {
  auto const size = static_cast<std::size_t>(state.range(0));
  read_all(state, bulk(size), size < 10'000 ? 512 : 1);
}
BENCHMARK(reader_bulk_string)->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(1'000'000);

void reader_status(benchmark::State& state) { read_all(state, "+OK\r\n", 512); }
BENCHMARK(reader_status);

void reader_integer(benchmark::State& state) { read_all(state, ":123456\r\n", 512); }
BENCHMARK(reader_integer);

void reader_array_of_1000(benchmark::State& state) {
  std::string one = "*1000\r\n";
  for (int i = 0; i < 1000; ++i) one += bulk(10);
  read_all(state, one, 1);
}
BENCHMARK(reader_array_of_1000);

}  // namespace
