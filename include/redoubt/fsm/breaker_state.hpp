// SPDX-License-Identifier: BSL-1.0
//
// A circuit breaker: closed -> open -> half-open (exactly one trial) -> recovering -> closed. Each change
// makes a new generation; a result that belongs to an older one changes nothing.
//
// What happens on every call while all is well, and every refusal while it is not, is decided from one atomic
// word (gate, flags, cause, generation) and needs no lock. Everything else is for one caller at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include <redoubt/core/random.hpp>
#include <redoubt/core/striped_counter.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/breaker_options.hpp>
#include <redoubt/fsm/breaker_window.hpp>

namespace redoubt {

/// Where a breaker stands.
enum class breaker_phase : std::uint8_t {
  closed,      ///< Calls pass.
  open,        ///< Calls are refused.
  half_open,   ///< One trial passes, or is awaited.
  recovering,  ///< A growing share of the calls passes.
};

/// The right to make one call. Its result goes to `record()` once; a pass that never reports takes nothing
/// with it but the lease of a trial, which runs out.
struct breaker_pass {
  std::uint32_t generation = 0;
  std::uint32_t trial = 0;  ///< Number of the trial; 0 for an ordinary call.
  bool counts = false;      ///< False: let through although refused (`metrics_only`) or forced; only counted.
};

/// The answer to somebody who wants to call.
struct breaker_decision {
  bool admitted = false;
  breaker_pass pass{};             ///< When admitted.
  deadline limit{};                ///< Of a trial: when it must have ended.
  duration retry_after{};          ///< When refused: when asking again is useful. Zero for `forced_open`.
  errc cause = errc::unspecified;  ///< When refused: the failure that opened the breaker.
};

/// A change of phase.
struct breaker_transition {
  breaker_phase from = breaker_phase::closed;
  breaker_phase to = breaker_phase::closed;
  std::uint32_t generation = 0;    ///< After the change.
  errc cause = errc::unspecified;  ///< When it opened: because of this.
};

/// Numbers of a breaker.
struct breaker_snapshot {
  breaker_phase phase = breaker_phase::closed;
  breaker_mode mode = breaker_mode::normal;
  std::uint32_t generation = 0;
  errc cause = errc::unspecified;  ///< While open or half-open: why. `breaker_open`: on others' advice.
  std::uint64_t succeeded = 0;     ///< Calls that counted as success.
  std::uint64_t failed = 0;        ///< Calls that counted as failure.
  std::uint64_t neutral = 0;       ///< Calls that said nothing.
  std::uint64_t stale = 0;         ///< Of these three: began before the last change, and changed nothing.
  std::uint64_t slow = 0;          ///< With `slow`: calls that took longer than `slow_after`.
  std::uint64_t refused = 0;       ///< Refused.
  std::uint64_t would_refuse = 0;  ///< Let through only because of `metrics_only`.
  std::uint64_t opened = 0;        ///< Changes to open.
  std::uint64_t advised = 0;       ///< Of these: because others advised it.
  std::uint64_t trials = 0;        ///< Trials given.
  std::uint64_t lost_trials = 0;   ///< Trials that did not report within their lease.
};

/// Sans-io machine of a breaker. Copyable value.
class breaker_state {
 public:
  /// Throws `option_error` when the settings are out of range.
  explicit breaker_state(breaker_settings const& settings);

  // --- any thread, lock-free ---

  /// A pass when the breaker is closed; empty: ask `refuse_at_once()`.
  [[nodiscard]] std::optional<breaker_pass> pass_at_once() const noexcept;
  /// A refusal when the breaker is open or its trial is under way; empty: ask `admit()`, one at a time.
  [[nodiscard]] std::optional<breaker_decision> refuse_at_once(time_point now) noexcept;
  /// True when `succeed_at_once()` needs the time.
  [[nodiscard]] bool counts_over_time() const noexcept { return (load(word_) & windowed) != 0; }
  /// True when it needs the call's duration, so that the time when the call begins has to be known.
  [[nodiscard]] bool counts_slow_calls() const noexcept { return (load(word_) & timed) != 0; }
  /// Records a success while closed. `now` and `took` may be anything when nobody asks for them.
  /// False: nothing happened, call `record()`, one at a time.
  [[nodiscard]] bool succeed_at_once(breaker_pass pass, duration took, time_point now) noexcept;
  /// Records that a call said nothing. False: it was a trial, call `give_up()`, one at a time.
  [[nodiscard]] bool neutral_at_once(breaker_pass pass) noexcept;
  [[nodiscard]] breaker_snapshot snapshot() const noexcept;
  /// What the settings say about it.
  [[nodiscard]] breaker_capability watches() const noexcept;

  // --- one at a time ---

  /// Decides.
  [[nodiscard]] breaker_decision admit(time_point now, random_source& random);
  /// A call ended. `took` matters where slow calls count, `cause` for failures.
  void record(breaker_pass pass, breaker_outcome outcome, duration took, errc cause, time_point now,
              random_source& random);
  /// Others say that the dependency is down: a closed breaker opens for its own open period, not beyond
  /// `until`, with the cause `breaker_open`. False: it is not closed, is forced, follows no advice, or
  /// `until` has passed.
  bool advise(time_point until, time_point now, random_source& random);
  /// `record()` of a neutral result without the time.
  void give_up(breaker_pass pass) noexcept;
  /// New settings, effective at once; phase and counts stay, except that a forced mode begins and ends with a
  /// closed, empty breaker. Throws `option_error`, and then changes nothing.
  void configure(breaker_settings const& settings);
  /// The oldest change of phase not taken yet. At most four are kept: take them after each step.
  [[nodiscard]] std::optional<breaker_transition> take_transition() noexcept;
  /// When time alone changes what `admit()` answers; `time_point::max()` for never.
  [[nodiscard]] time_point next_wakeup() const noexcept;
  [[nodiscard]] breaker_settings const& settings() const noexcept { return settings_; }

  /// Asserts what must always hold.
  void check() const noexcept;

 private:
  enum class gate : std::uint8_t { pass, refuse, ask, always_refuse, always_pass };

  // The word: gate in bits 0 to 2, flags, the cause in bits 8 to 15, the generation in bits 32 to 63.
  static constexpr std::uint64_t gate_mask = 7;
  static constexpr std::uint64_t troubled = 8;   // failures in a row: a success has to reset them
  static constexpr std::uint64_t windowed = 16;  // there is a rolling window
  static constexpr std::uint64_t timed = 32;     // and it counts slow calls

  static gate gate_of(std::uint64_t word) noexcept { return static_cast<gate>(word & gate_mask); }
  static errc cause_of(std::uint64_t word) noexcept { return static_cast<errc>(word >> 8 & 0xff); }
  static std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 32);
  }
  template <class T>
  static T load(T const& from, std::memory_order order = std::memory_order_relaxed) noexcept {
    return std::atomic_ref(const_cast<T&>(from)).load(order);
  }
  static void add(std::uint64_t& counter) noexcept {
    std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
  }
  // Good calls that the window does not hold. Whoever sees the sum sees that they have left it.
  void add_succeeded(std::uint64_t calls) noexcept {
    if (calls > 0) succeeded_.add(calls, std::memory_order_release);
  }

  [[nodiscard]] bool forced() const noexcept;
  void settle(time_point now, random_source& random);
  void enter(breaker_phase to, errc cause);
  void open(errc cause, time_point now, random_source& random);
  void close(time_point now);
  void fresh();
  void record_trial(breaker_pass pass, breaker_outcome outcome, errc cause, time_point now,
                    random_source& random);
  bool apply(breaker_pass pass, breaker_outcome outcome, duration took, errc cause, time_point now,
             random_source& random);
  bool record_call(breaker_outcome outcome, bool slow, errc cause, time_point now, random_source& random);
  [[nodiscard]] breaker_decision pass() const noexcept;
  [[nodiscard]] breaker_decision refuse(duration retry_after) noexcept;
  void publish() noexcept;

  std::uint64_t word_ = 0;                    // what the lock-free part looks at
  std::int64_t refuse_until_ = 0;             // with gate::refuse
  std::int64_t slow_after_ = 0;               // a copy that may be read any time
  breaker_mode mode_ = breaker_mode::normal;  // copies, likewise
  breaker_capability watches_ = breaker_capability::writes;
  breaker_window window_;
  breaker_snapshot counts_;            // without these two, which every call may raise:
  detail::striped_counter succeeded_;  // those that the window does not hold
  detail::striped_counter refused_;
  std::uint64_t shown_ = 0;  // of successes, in the last snapshot

  breaker_settings settings_;
  breaker_phase phase_ = breaker_phase::closed;
  std::uint32_t generation_ = 1;
  std::uint32_t failures_ = 0;  // in a row
  std::uint32_t openings_ = 0;  // since it last worked
  std::uint32_t trial_ = 0;     // the last one's number
  bool trial_out_ = false;
  errc cause_ = errc::unspecified;
  time_point until_{};  // end of the open period, of the trial's lease, of the ramp
  double credit_ = 0;   // of calls in the ramp
  std::array<breaker_transition, 4> transitions_{};
  std::uint8_t untaken_ = 0;
};

// What every call goes through is here, so that it needs no call of a function.

inline std::optional<breaker_pass> breaker_state::pass_at_once() const noexcept {
  auto const word = load(word_);
  auto const g = gate_of(word);
  if (g == gate::pass) return breaker_pass{generation_of(word), 0, true};
  if (g == gate::always_pass) return breaker_pass{generation_of(word), 0, false};
  return std::nullopt;
}

inline std::optional<breaker_decision> breaker_state::refuse_at_once(time_point now) noexcept {
  auto const word = load(word_, std::memory_order_acquire);
  auto const g = gate_of(word);
  duration left{};
  if (g == gate::refuse) {
    // Written before the word that this belongs to; when it is already that of a later word, its own time is
    // as good.
    left = duration(load(refuse_until_) - now.time_since_epoch().count());
    if (left <= duration::zero()) return std::nullopt;
  } else if (g != gate::always_refuse) {
    return std::nullopt;
  }
  refused_.add();
  breaker_decision out;
  out.retry_after = left;
  out.cause = cause_of(word);
  return out;
}

inline bool breaker_state::succeed_at_once(breaker_pass pass, duration took, time_point now) noexcept {
  if (pass.counts) {
    auto const word = load(word_);
    if ((word & (gate_mask | troubled)) != static_cast<std::uint64_t>(gate::pass)) return false;
    if (generation_of(word) != pass.generation || pass.trial != 0) return false;
    if ((word & windowed) != 0) {
      if ((word & timed) != 0 && took.count() > load(slow_after_)) return false;
      add_succeeded(window_.add_good(now));
      return true;
    }
  }
  succeeded_.add();
  return true;
}

}  // namespace redoubt
