// SPDX-License-Identifier: BSL-1.0
//
// How long to pause before trying again: exponential with full jitter, so that many clients that failed
// together do not come back together. Randomness comes in as an argument; nothing here waits.
#pragma once

#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// How pauses grow.
struct backoff_options {
  /// Ceiling of the first pause; it doubles with every further one. Default 10 ms. Range 1 ns .. 1 h.
  duration base = std::chrono::milliseconds(10);
  /// No pause is longer than this. Default 250 ms. Range `base` .. 24 h.
  duration cap = std::chrono::milliseconds(250);

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Pauses of a series of failed attempts: uniform in [0, min(cap, base * 2^n)] for n = 0, 1, 2, ... Value
/// type, copyable, not thread-safe.
class backoff {
 public:
  /// Throws `option_error` when the options are out of range.
  explicit backoff(backoff_options options = {});

  /// The pause before the next attempt; in [0, cap]. Each call raises the ceiling of the one after it.
  [[nodiscard]] duration next(random_source& random);

  /// Back to the first pause; to be called after a success.
  void reset() noexcept { attempts_ = 0; }

  /// Pauses handed out since construction or `reset()`; stops counting at its largest value.
  [[nodiscard]] unsigned attempts() const noexcept { return attempts_; }

  /// min(cap, base * 2^attempt), for any attempt number: it never wraps, and never falls as `attempt` grows.
  [[nodiscard]] static duration ceiling(backoff_options const& options, unsigned attempt) noexcept;

 private:
  backoff_options options_;
  unsigned attempts_ = 0;
};

}  // namespace redoubt
