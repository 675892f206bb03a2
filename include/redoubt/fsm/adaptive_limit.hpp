// SPDX-License-Identifier: BSL-1.0
//
// How much work at once is good for a dependency, found from how long the work takes: when it takes longer
// than it used to, a queue has built up behind the limit, and the limit sinks; when it does not, the limit
// rises.
#pragma once

#include <cstdint>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// How a limit is found.
struct adaptive_limit_options {
  /// Never lower. Default 2. Range 1 .. 65536.
  std::uint32_t floor = 2;
  /// The limit at first. Default 8. Range `floor` .. 65536; more than the ceiling counts as the ceiling.
  std::uint32_t initial = 8;
  /// So much longer than usual is still no queue. Default 1.5. Range 1 .. 10.
  double tolerance = 1.5;
  /// The usual time follows shorter samples over a tenth of so many, longer ones over ten times as many.
  /// Default 600. Range 10 .. 100000.
  std::uint32_t memory = 600;
  /// The limit changes at most this often, by what was seen meanwhile. Default 100 ms. Range 1 ms .. 1 min.
  duration interval = std::chrono::milliseconds(100);

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// A limit by gradient, after Netflix' Gradient2 (concurrency-limits), but with a usual time that does not
/// drift upwards in a long overload: limit * clamp(tolerance * usual / recent, 0.5, 1) + sqrt(limit),
/// smoothed by 0.2. Samples taken while less than half of the limit was used do not raise it: they say
/// nothing about it. Sans-io machine: copyable value, not thread-safe.
class adaptive_limit {
 public:
  adaptive_limit(adaptive_limit_options const& options, std::uint32_t ceiling) noexcept;

  /// A piece of work took so long, and ended at `now` with `used` slots in use. True when the limit has
  /// changed.
  bool observe(duration took, std::uint32_t used, time_point now) noexcept;

  /// The limit now: `floor` to the ceiling.
  [[nodiscard]] std::uint32_t limit() const noexcept;
  /// Another ceiling.
  void set_ceiling(std::uint32_t ceiling) noexcept { ceiling_ = ceiling; }

  /// Asserts what must always hold.
  void check() const noexcept;

 private:
  adaptive_limit_options options_;
  std::uint32_t ceiling_;
  double limit_;
  double usual_ = 0;   // nanoseconds; 0: no sample yet
  double recent_ = 0;  // sum over the interval
  std::uint32_t samples_ = 0;
  std::uint32_t most_used_ = 0;
  time_point next_{};
};

}  // namespace redoubt
