// SPDX-License-Identifier: BSL-1.0
//
// Calls that begin at given times, and what came of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "throughput/peer.hpp"

namespace bench {

/// GETs of 100 bytes, `rate` a second, the same time apart.
class arrivals {
 public:
  using clock = std::chrono::steady_clock;

  arrivals(double rate, double seconds)
      : step_ns_(1e9 / rate),
        waits_(static_cast<std::size_t>(rate * seconds) + 1),
        begin_(clock::now()) {}

  [[nodiscard]] std::size_t size() const noexcept { return waits_.size(); }
  /// When call `i` is to begin.
  [[nodiscard]] clock::time_point due(std::size_t i) const noexcept {
    return begin_ + std::chrono::nanoseconds(static_cast<std::int64_t>(step_ns_ * static_cast<double>(i)));
  }
  [[nodiscard]] contents const& data() const noexcept { return data_; }

  void answered(std::size_t i, std::string_view text) {
    if (text != data_.values[i % data_.values.size()]) ++wrong_;
    ++answers_;
    ended(i);
  }
  void failed(std::size_t i) {
    ++failed_;
    ended(i);
  }
  [[nodiscard]] bool over() const noexcept { return answers_ + failed_ == size(); }

  /// Of every call, in their order.
  [[nodiscard]] std::vector<float>& waits_us() noexcept { return waits_; }
  [[nodiscard]] std::size_t answers() const noexcept { return answers_; }
  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::size_t failed() const noexcept { return failed_; }

 private:
  void ended(std::size_t i) {
    std::chrono::duration<float, std::micro> const wait = clock::now() - due(i);
    waits_[i] = wait.count();
  }

  contents const& data_ = contents_of(loads[0]);
  double step_ns_;
  std::vector<float> waits_;
  std::size_t answers_ = 0;
  std::size_t wrong_ = 0;
  std::size_t failed_ = 0;
  clock::time_point begin_;
};

/// A client that sends such calls.
class sender {
 public:
  virtual ~sender() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  virtual void send(std::size_t i, arrivals& into) = 0;
  /// Does what can be done without waiting.
  virtual void turn() = 0;
};

}  // namespace bench
