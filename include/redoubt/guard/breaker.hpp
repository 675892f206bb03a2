// SPDX-License-Identifier: BSL-1.0
//
// A circuit breaker: after enough failures it refuses at once, so that nobody waits for what does not answer
// and the dependency is left in peace; after a while one trial finds out whether it is back.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <redoubt/core/events.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/ring.hpp>
#include <redoubt/fsm/breaker_state.hpp>
#include <redoubt/guard/layer.hpp>

namespace redoubt {

/// One per dependency and capability: reads and writes of one Redis have a breaker each, because a read-only
/// server answers reads. Thread-safe; must outlive the calls in flight.
///
/// While closed, asking and recording a success take no lock and allocate nothing, and read the clock at most
/// once, when the call ends; neither does a refusal. (Only where slow calls count, it is read when the call
/// begins, too, unless the caller knows the time already, as a stack does.) A refusal is a value:
/// `breaker_open`, effect none, with `retry_after` and the `cause`.
///
///     breaker payments{{.name = "payments"}};
///     auto permit = payments.try_acquire(executor);
///     if (!permit) co_return show_fallback(permit.error());
///     auto answer = co_await pay(earlier(by, permit->limit()));
///     permit->record(answer, executor);
///
/// Break only what has a fallback: without one the same failure just arrives faster. In a stack:
/// `through(payments)`.
class breaker {
 public:
  struct options {
    /// Appears in failures and events. Default "breaker".
    std::string name = "breaker";
    breaker_settings settings{};
    /// Told of every change of phase: once, in order, outside every lock. Must outlive the breaker. Default
    /// none.
    event_sink* events = nullptr;
    /// Makes the open periods the same in every run. Default: the system's entropy.
    std::optional<std::uint64_t> seed = std::nullopt;
  };

  /// The right to make one call. Give its result to `record()`, once. A permit that is destroyed without says
  /// nothing about the dependency; the lease of a trial goes back. Movable.
  class [[nodiscard]] permit {
   public:
    permit(permit&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          pass_(other.pass_),
          since_(other.since_),
          limit_(other.limit_) {}
    permit& operator=(permit&& other) noexcept {
      if (this != &other) {
        give_up();
        owner_ = std::exchange(other.owner_, nullptr);
        pass_ = other.pass_;
        since_ = other.since_;
        limit_ = other.limit_;
      }
      return *this;
    }
    permit(permit const&) = delete;
    permit& operator=(permit const&) = delete;
    ~permit() { give_up(); }

    /// True for the one call that finds out whether the dependency is back.
    [[nodiscard]] bool trial() const noexcept { return pass_.trial != 0; }
    /// By when a trial must have ended; not set for an ordinary call.
    [[nodiscard]] deadline limit() const noexcept { return limit_; }

    /// The call ended with `r`; `clock()` -> `time_point` is read only when it is needed.
    template <class T, class Clock>
    void record_by(result<T> const& r, Clock const& clock) {
      if (r.has_value()) return succeed(clock);
      record(r.error(), clock());
    }
    /// @copydoc record_by
    template <class T>
    void record(result<T> const& r, time_point now) {
      record_by(r, [now] { return now; });
    }
    /// @copydoc record_by
    template <class T>
    void record(result<T> const& r, asio::any_io_executor const& executor) {
      record_by(r, [&executor] { return redoubt::now(executor); });
    }
    /// For operations that do not end in a `result`.
    void record(breaker_outcome outcome, errc cause, time_point now);

   private:
    friend class breaker;
    permit(breaker* owner, breaker_pass pass, time_point since, deadline limit = {}) noexcept
        : owner_(owner),
          pass_(pass),
          since_(since),
          limit_(limit) {}

    template <class Clock>
    void succeed(Clock const& clock) {
      auto* const owner = std::exchange(owner_, nullptr);
      if (owner == nullptr) return;
      auto const now = owner->state_.counts_over_time() ? clock() : time_point{};
      // Whoever began before durations were asked for is not slow.
      auto const took = since_ == time_point{} ? duration::zero() : now - since_;
      if (owner->state_.succeed_at_once(pass_, took, now)) return;
      owner->record(pass_, breaker_outcome::success, since_, errc::unspecified,
                    now == time_point{} ? clock() : now);
    }
    void record(failure const& f, time_point now);
    void give_up() noexcept {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->give_up(pass_);
    }

    breaker* owner_;
    breaker_pass pass_;
    time_point since_;
    deadline limit_;
  };

  breaker();
  /// Throws `option_error` when an option is out of range.
  explicit breaker(options o);
  breaker(breaker const&) = delete;
  breaker& operator=(breaker const&) = delete;

  /// A permit, or a refusal: `breaker_open` (rejected, effect none, class `saturated`) with `retry_after` and
  /// `cause`. `clock()` -> `time_point` is read only when it is needed.
  template <class Clock>
  [[nodiscard]] result<permit> try_acquire_by(Clock const& clock) {
    if (auto const pass = state_.pass_at_once()) {
      return permit(this, *pass, state_.counts_slow_calls() ? clock() : time_point{});
    }
    auto const now = clock();
    if (auto const no = state_.refuse_at_once(now)) return refusal(*no);
    return ask(now);
  }
  /// @copydoc try_acquire_by
  [[nodiscard]] result<permit> try_acquire(time_point now) {
    return try_acquire_by([now] { return now; });
  }
  /// @copydoc try_acquire_by
  [[nodiscard]] result<permit> try_acquire(asio::any_io_executor const& executor) {
    return try_acquire_by([&executor] { return redoubt::now(executor); });
  }

  /// Others say that the dependency is down (see `breaker_hint`): a closed breaker opens, for its own open
  /// period but not beyond `until`, and then goes through its trial as ever; the `cause` is `breaker_open`.
  /// Counted as `advised`. False, and nothing happens: when it is not closed, when it is forced, when
  /// `follow_advice` is off, or when `until` has passed.
  bool advise_open(time_point until, time_point now);
  /// New settings, effective at once. Forced modes begin and end with a closed, empty breaker. Throws
  /// `option_error`, and then changes nothing.
  void configure(breaker_settings const& settings);
  /// The settings at this moment.
  [[nodiscard]] breaker_settings settings() const;
  /// Numbers and phase at this moment. An open period that has passed shows as open until somebody asks.
  [[nodiscard]] breaker_snapshot snapshot() const noexcept { return state_.snapshot(); }
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return name_; }

 private:
  [[nodiscard]] result<permit> ask(time_point now);
  // Made where it is returned: a copy of a failure that has just been written waits for the bytes of it.
  [[nodiscard]] result<permit> refusal(breaker_decision const& no) const {
    return result<permit>(boost::system::in_place_error, errc::breaker_open, server_errc::none, effect::none,
                          phase::queue, true, std::uint8_t{0}, command_name(), no.cause, duration::zero(),
                          no.retry_after, detail_);
  }
  void record(breaker_pass pass, breaker_outcome outcome, time_point since, errc cause, time_point now);
  void give_up(breaker_pass pass) noexcept;
  void report(std::unique_lock<std::mutex>& lock);

  breaker_state state_;  // its lock-free part by anybody, the rest under the mutex
  std::string name_;
  std::shared_ptr<failure_detail const> detail_;  // not counted, see detail::named_detail
  event_sink* events_;
  std::mutex mutable mutex_;
  random_source random_;                // under the mutex
  ring<breaker_transition> to_report_;  // under the mutex
  bool reporting_ = false;              // under the mutex
};

/// A breaker in a stack.
class breaker_layer {
 public:
  static constexpr int rank = layer_rank::breaker;
  explicit breaker_layer(breaker& guard) noexcept : guard_(&guard) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    auto permit = guard_->try_acquire_by([&scope] { return scope.now; });
    if (!permit) return std::move(done)(result<T>(std::move(permit).error()));
    auto const inner = scope.until(permit->limit());
    next(
        inner,
        [held = std::move(*permit), clock = &scope.clock, done = std::move(done)](result<T> r) mutable {
          held.record_by(r, [clock] { return clock->now(); });
          std::move(done)(std::move(r));
        },
        args...);
  }

 private:
  breaker* guard_;
};

/// The breaker as a layer of a stack.
[[nodiscard]] inline breaker_layer through(breaker& guard) noexcept { return breaker_layer(guard); }

}  // namespace redoubt
