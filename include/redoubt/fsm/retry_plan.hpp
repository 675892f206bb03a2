// SPDX-License-Identifier: BSL-1.0
//
// Whether to try again after a failed attempt, and when. Decides by what the other side may have done
// (`failure::effect`), not by the name of a command, and never plans an attempt for which no time is left.
#pragma once

#include <cstdint>
#include <optional>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/backoff.hpp>

namespace redoubt {

/// What may be sent again.
enum class repeat : std::uint8_t {
  /// Only what was not executed and never will be (`effect::none`).
  not_executed,
  /// Also what may have been executed: the caller declares that executing it twice is the same as once.
  idempotent,
};

/// The declaration that executing an operation twice is the same as once, where nothing less will do: a
/// `hedge` asks for it. Written `redoubt::idempotent`.
struct idempotent_t {
  explicit constexpr idempotent_t() noexcept = default;
  constexpr operator repeat() const noexcept { return repeat::idempotent; }  // NOLINT: the same declaration
};
/// See `idempotent_t`.
inline constexpr idempotent_t idempotent{};

/// How a retry behaves.
struct retry_options {
  /// Further attempts after the first. Default 0: off. Range 0 .. 10.
  std::uint32_t retries = 0;
  /// Limit of everything, attempts and pauses together. Default 1 s. Range 1 ms .. 1 h.
  duration total = std::chrono::seconds(1);
  /// An attempt that would have less time than this is not made. Default 1 ms. Range 0 .. `total`.
  duration floor = std::chrono::milliseconds(1);
  /// Pauses between attempts, full jitter. A longer `failure::retry_after` is obeyed.
  backoff_options pause{};
  /// Limit of one attempt. Default none: an attempt may take what is left of `total`. When it is set, all
  /// attempts with their longest pauses must fit into `total`, or `validate()` refuses: three attempts of 10
  /// s do not fit into 10 s. Range 1 ms .. `total`. The deadline that an attempt is given says so; who does
  /// not trust the operation to obey puts a limit around it.
  std::optional<duration> attempt_timeout{};

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// The decision after a failed attempt.
struct retry_decision {
  enum class kind : std::uint8_t {
    again,           ///< At `at`.
    not_repeatable,  ///< The failure is final: a mistake, a cancellation, our own bound, or it may have been
                     ///< executed.
    none_left,       ///< All attempts are used up.
    no_time,         ///< The pause and `floor` do not fit into what is left.
    no_budget,       ///< The budget that is shared by all operations does not cover it.
  } what = kind::not_repeatable;
  time_point at{};
};

/// The attempts of one operation. Sans-io machine: value type, not thread-safe. It has no wake-up of its own:
/// the time at which to go on is in the decision.
class retry_plan {
 public:
  /// The operation starts at `start` and ends by `by` or `options.total` later, whichever comes first.
  retry_plan(retry_options const& options, time_point start, deadline by);

  /// The end of the operation, and so of each of its attempts.
  [[nodiscard]] deadline limit() const noexcept { return limit_; }

  /// The end of an attempt that starts now.
  [[nodiscard]] deadline attempt_limit(time_point now) const noexcept;

  /// An attempt failed with `f`.
  [[nodiscard]] retry_decision after(failure const& f, repeat allowed, time_point now, random_source& random);

  /// The failure of the whole operation: the last attempt's, with all sends counted, the whole time, and
  /// effect `unknown` as soon as one attempt may have been executed. When the last attempt was refused by
  /// ourselves (an open breaker, a full bulkhead), `cause` says what the one before it ended with.
  [[nodiscard]] failure sum_up(failure last, time_point now) const;

 private:
  retry_options options_;
  backoff pause_;
  time_point start_;
  deadline limit_;
  std::uint32_t retries_ = 0;
  std::uint32_t sends_ = 0;
  std::optional<errc> real_cause_;  // of the last attempt that we did not refuse ourselves
  bool maybe_executed_ = false;
  bool seen_readonly_ = false;
};

}  // namespace redoubt
