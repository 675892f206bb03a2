// SPDX-License-Identifier: BSL-1.0
//
// When a circuit breaker opens, for how long, and how it comes back.
#pragma once

#include <cstdint>
#include <optional>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// What a breaker does with what it knows.
enum class breaker_mode : std::uint8_t {
  normal,         ///< Refuses while open.
  metrics_only,   ///< Counts and changes its state, but lets everything through: for a first roll-out.
  forced_open,    ///< Refuses everything, whatever happens: a dependency is taken out by hand.
  forced_closed,  ///< Lets everything through and only counts.
};

/// What a breaker watches over: one dependency can answer reads and refuse writes. Give each its own breaker.
enum class breaker_capability : std::uint8_t {
  reads,   ///< READONLY, OOM, MISCONF and the like show that the server lives: they count as success.
  writes,  ///< They count as failures.
};

/// How a call that ended counts.
enum class breaker_outcome : std::uint8_t {
  success,  ///< The dependency answered, be it with a refusal of this one call.
  failure,  ///< The dependency did not answer, or cannot do its work.
  neutral,  ///< Says nothing about the dependency: cancelled, or refused by us.
};

/// How a failure counts. Class `unavailable` is a failure; `write_refused` is one for `writes`; an answer
/// that blames the call is a success; our own refusals, wrong credentials and cancellation are neutral.
[[nodiscard]] breaker_outcome breaker_outcome_of(failure const& f, breaker_capability watched) noexcept;

/// Share of calls over a rolling window that opens a breaker.
struct breaker_ratio {
  /// Opens when this share of the calls failed. Default 0.5. Range above 0 .. 1.
  double failures = 0.5;
  /// Opens when this share of the calls took longer than `slow_after`. Default empty: nobody asks how long a
  /// call took, and the clock is read only when it ends. Range above 0 .. 1.
  std::optional<double> slow = std::nullopt;
  /// With `slow`: a call that takes longer is slow, whether it fails or not. Default 1 s. Range 1 us .. 1 h.
  duration slow_after = std::chrono::seconds(1);
  /// Below so many calls in the window no share says anything. Default 20. Range 1 .. 1000000.
  std::uint32_t minimum_calls = 20;
  /// The window; it rolls on in tenths. Default 10 s. Range 10 ms .. 1 h.
  duration window = std::chrono::seconds(10);
};

/// How long a breaker stays open: `floor` plus full jitter, uniform up to min(cap, base * 2^n), n counting
/// the openings since it last worked. So a fleet that opened together does not try together.
struct breaker_open_period {
  /// Never shorter. Default 100 ms. Range 1 ms .. `base`.
  duration floor = std::chrono::milliseconds(100);
  /// Ceiling of the first period. Default 2 s. Range 1 ms .. `cap`.
  duration base = std::chrono::seconds(2);
  /// Ceiling of all of them. Default 30 s. Range `base` .. 24 h.
  duration cap = std::chrono::seconds(30);
};

/// After a successful trial: not everybody at once.
struct breaker_ramp {
  /// Share admitted at first; grows evenly to all. Default 0.1. Range above 0 .. 1.
  double start = 0.1;
  /// How long until all are admitted. Default 5 s. Range 1 ms .. 1 h.
  duration length = std::chrono::seconds(5);
};

/// All of it. Either or both of `consecutive` and `ratio` open the breaker.
struct breaker_settings {
  /// Opens after so many failures without a success between them. Default 5. Range 1 .. 65535. Empty: not
  /// asked.
  std::optional<std::uint32_t> consecutive = 5;
  /// Opens by shares over a window. Default empty: not asked.
  std::optional<breaker_ratio> ratio = std::nullopt;
  breaker_open_period open{};
  /// The trial's own limit; it is shorter than a call's because nothing else waits for it. A trial that has
  /// not reported `lease_grace` later counts as failed. Default 500 ms. Range 1 ms .. 10 min.
  duration trial_limit = std::chrono::milliseconds(500);
  /// Recovery after closing. Default empty: everybody at once.
  std::optional<breaker_ramp> ramp = std::nullopt;
  breaker_capability watches = breaker_capability::writes;
  breaker_mode mode = breaker_mode::normal;
  /// Whether `breaker::advise_open()` may open it. Default true: whoever shares nothing gets no advice.
  bool follow_advice = true;

  /// Between a trial's limit and the end of its lease.
  static constexpr duration lease_grace = std::chrono::milliseconds(50);

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

}  // namespace redoubt
