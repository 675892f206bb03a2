// SPDX-License-Identifier: BSL-1.0
#include "peer.hpp"

#include <sys/resource.h>

#include <mutex>
#include <random>

#include <fmt/format.h>

#include "allocations.hpp"

namespace bench {
contents::contents(load const& of) {
  std::mt19937 random(1);  // NOLINT: the same values in every run
  auto const text_of = [&](std::string text) {
    while (text.size() < of.bytes) text += static_cast<char>('!' + random() % 94);
    return text;
  };
  for (std::size_t i = 0; i < of.keys; ++i) {
    // Reads and writes of a size have the same keys: a SET changes nothing.
    keys.push_back(fmt::format("bench:{}:{}:{}", of.elements, of.bytes, 1000000 + i));
    if (of.elements == 0) values.push_back(text_of(fmt::format("value {} ", i)));
    for (std::size_t j = 0; j < of.elements; ++j) values.push_back(text_of(fmt::format("{}:{}:", i, j)));
  }
}

contents const& contents_of(load const& of) {
  static std::array<std::unique_ptr<contents const>, loads.size()> made;
  static std::array<std::once_flag, loads.size()> once;
  auto const at = static_cast<std::size_t>(&of - loads.data());
  std::call_once(once[at], [&] { made[at] = std::make_unique<contents const>(of); });
  return *made[at];
}

double cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto const us = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

run_meter::run_meter(cell const& what, double seconds)
    : load_(*what.of),
      data_(contents_of(load_)),
      single_(what.in_flight == 1) {
  if (single_) numbers_.waits_us.reserve(static_cast<std::size_t>(seconds * 250'000) + 1000);
  allocations_begin_ = allocations();
  cpu_begin_ = cpu_us();
  begin_ = std::chrono::steady_clock::now();
  end_ =
      begin_ + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

bool run_meter::look() noexcept {
  over_ = std::chrono::steady_clock::now() >= end_;
  return over_;
}

void run_meter::take_wait() {
  if (numbers_.waits_us.size() == numbers_.waits_us.capacity())
    return;  // would be counted as the peer's allocation
  std::chrono::duration<float, std::micro> const wait = std::chrono::steady_clock::now() - began_;
  numbers_.waits_us.push_back(wait.count());
}

sample run_meter::finish() {
  std::chrono::duration<double> const time = std::chrono::steady_clock::now() - begin_;
  numbers_.seconds = time.count();
  numbers_.cpu_us = cpu_us() - cpu_begin_;
  numbers_.allocations = allocations() - allocations_begin_;
  return std::move(numbers_);
}

}  // namespace bench
