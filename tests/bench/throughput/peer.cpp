// SPDX-License-Identifier: BSL-1.0
#include "peer.hpp"

#include <sys/resource.h>

#include <random>

#include "allocations.hpp"

namespace bench {
namespace {

constexpr std::size_t value_size = 100;

std::vector<std::string> make_keys() {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < key_count; ++i) out.push_back("bench:key:" + std::to_string(1000000 + i));
  return out;
}

std::vector<std::string> make_values() {
  std::vector<std::string> out;
  std::mt19937 random(1);  // NOLINT: the same values in every run
  for (std::size_t i = 0; i < key_count; ++i) {
    auto text = "value " + std::to_string(i) + ' ';
    while (text.size() < value_size) text += static_cast<char>('!' + random() % 94);
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace

std::string const& key(std::size_t i) {
  static auto const all = make_keys();
  return all[i];
}

std::string const& value(std::size_t i) {
  static auto const all = make_values();
  return all[i];
}

double cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto const us = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

run_meter::run_meter(cell const& what, double seconds) : single_(what.in_flight == 1) {
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
