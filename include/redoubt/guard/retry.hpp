// SPDX-License-Identifier: BSL-1.0
//
// Tries an asynchronous operation again, where that is safe and fits into the time. Off unless asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/async/safe_callable.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/random_seeds.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/fsm/retry_plan.hpp>
#include <redoubt/guard/layer.hpp>
#include <redoubt/guard/layer_coroutine.hpp>
#include <redoubt/guard/retry_budget.hpp>

namespace redoubt {

namespace detail {
class retry_layer;
}

/// Numbers of a `retry`. When nothing is in flight: `operations == succeeded + not_repeatable + none_left +
/// no_time + no_budget`.
struct retry_snapshot {
  std::uint64_t operations = 0;      ///< Started.
  std::uint64_t attempts = 0;        ///< Made for them, the first ones included.
  std::uint64_t succeeded = 0;       ///< Ended with a value.
  std::uint64_t not_repeatable = 0;  ///< Ended by a failure that is final.
  std::uint64_t none_left = 0;       ///< Ended because all attempts were used up.
  std::uint64_t no_time = 0;         ///< Ended because another attempt did not fit into the time.
  std::uint64_t no_budget = 0;       ///< Ended because the shared budget did not cover another attempt.
};

/// Repeats an operation: at most `retries` times, with full jitter, within `total` and the caller's deadline.
/// It never sleeps after the last attempt, and stops at once when the pause would leave no time for another.
///
/// Never repeated: a caller's cancellation, a mistake or wrong configuration, a refusal by our own bounds
/// that does not say when to come back, and, unless declared `repeat::idempotent`, anything that may have
/// been executed.
///
/// With a `retry_budget` the budget is asked before the pause, so that nobody waits for an attempt that is
/// not made. Each operation in front of the same dependency earns for it and spends from it.
///
/// One layer per call path may retry: two multiply. Thread-safe; must outlive the operations in flight.
class retry {
 public:
  using options = retry_options;

  /// Throws `option_error` when an option is out of range. With a seed the pauses are the same in every run.
  explicit retry(options o, std::optional<std::uint64_t> seed = std::nullopt) : options_(o), seeds_(seed) {
    options_.validate();
  }
  /// The same with a budget, which must outlive this object.
  retry(options o, retry_budget& budget, std::optional<std::uint64_t> seed = std::nullopt)
      : retry(o, &budget, seed) {}
  /// The same with a budget or, when it is null, without.
  retry(options o, retry_budget* budget, std::optional<std::uint64_t> seed) : retry(o, seed) {
    budget_ = budget;
  }
  retry(retry const&) = delete;
  retry& operator=(retry const&) = delete;

  /// Calls `attempt(deadline)` -> `awaitable<result<T>>`, each time with the deadline of that attempt, until
  /// it gives a value or trying again is no use. Completion: `void(result<T>)`, on the token's executor,
  /// exactly once, never inside this call. `executor` runs the attempts and provides the time. The failure is
  /// the last attempt's with all sends and the whole time in it; its effect is `unknown` if any attempt may
  /// have been executed. `retries_exhausted` when there was no time for the first. An attempt that throws
  /// counts as `load_failed`.
  template <class T, safe_callable Attempt, class Token = asio::deferred_t>
  auto run(asio::any_io_executor executor, deadline by, repeat allowed, Attempt&& attempt,
           Token&& token = Token{}) {
    auto start = [this, executor, by, allowed, attempt = std::forward<Attempt>(attempt)]() mutable {
      return loop<T>(executor, by, allowed, std::move(attempt));
    };
    return async_run<result<T>>(executor, std::move(start), std::forward<Token>(token));
  }

  /// The same as a coroutine, for what is built on it. Not for a temporary closure inside a `co_await`
  /// expression.
  template <class T, class Attempt>
  asio::awaitable<result<T>> loop(asio::any_io_executor executor, deadline by, repeat allowed,
                                  Attempt attempt) {
    auto const start = redoubt::now(executor);
    if (!admit(start, by)) {
      result<T> none(out_of_time());
      co_return none;
    }
    begun one = begin(start, by, allowed);
    asio::awaitable<result<T>> all = go_on<T>(executor, one, failure{}, std::move(attempt));
    result<T> got = co_await std::move(all);
    co_return got;
  }

  /// The longest that an operation can take without a deadline.
  [[nodiscard]] duration worst_case() const noexcept { return options_.total; }
  /// The most attempts of one operation.
  [[nodiscard]] std::uint32_t attempts() const noexcept { return options_.retries + 1; }

  /// Numbers so far.
  [[nodiscard]] retry_snapshot snapshot() const noexcept;

 private:
  friend class detail::retry_layer;

  /// An operation under way.
  struct begun {
    retry_plan plan;
    random_source random;
    repeat allowed;
    std::optional<time_point> pause_until{};  // set between two attempts
  };

  /// From the first attempt, or from the pause after an attempt that failed with `last`.
  template <class T, class Attempt>
  asio::awaitable<result<T>> go_on(asio::any_io_executor executor, begun one, failure last, Attempt attempt) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    timer clock(executor);
    for (;;) {
      if (one.pause_until) {
        boost::system::error_code stopped;
        co_await clock.async_wait_until(*one.pause_until, asio::redirect_error(asio::use_awaitable, stopped));
        if (stopped) {
          result<T> out(cancelled(one, std::move(last), clock.now()));
          co_return out;
        }
        repeats_.add();
      }
      deadline const limit = one.plan.attempt_limit(clock.now());
      result<T> got = co_await detail::value_of<T>(attempt, limit);
      if (got) {
        succeed();
        co_return got;
      }
      last = got.error();
      // Whatever an attempt says that took no notice of the request to stop.
      asio::cancellation_state const state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) {
        (void)one.plan.after(last, one.allowed, clock.now(), one.random);
        result<T> out(cancelled(one, std::move(last), clock.now()));
        co_return out;
      }
      if (!again(one, last, clock.now())) {
        result<T> out(one.plan.sum_up(std::move(last), clock.now()));
        co_return out;
      }
    }
  }

  [[nodiscard]] static failure out_of_time() noexcept;
  /// Counts an operation; false when there is no time for a first attempt.
  [[nodiscard]] bool admit(time_point now, deadline by) noexcept {
    operations_.add();
    if (!by.passed(now)) return true;
    too_late_.add();
    return false;
  }
  /// The end of a first attempt that starts now.
  [[nodiscard]] deadline first_limit(time_point now, deadline by) const noexcept {
    auto const longest = options_.attempt_timeout.value_or(options_.total);
    return earlier(by, deadline(saturating_add(now, longest)));
  }
  /// What an operation needs from its first failure on.
  [[nodiscard]] begun begin(time_point start, deadline by, repeat allowed) noexcept;
  /// Counts a success.
  void succeed() noexcept;
  /// Counts an end by the caller's wish, and sums it up; `last` is what the last attempt ended with.
  [[nodiscard]] failure cancelled(begun const& one, failure last, time_point now) noexcept;
  /// Decides what follows a failure, and counts an end. True: `pause_until` says when to go on.
  [[nodiscard]] bool again(begun& one, failure const& last, time_point now) noexcept;

  options options_;
  random_seeds seeds_;
  retry_budget* budget_ = nullptr;
  detail::counter operations_, repeats_, too_late_, succeeded_, not_repeatable_, none_left_, no_time_,
      no_budget_;
};

namespace detail {

/// A `retry` in a stack. A first attempt that succeeds costs no coroutine and no allocation.
class retry_layer {
 public:
  static constexpr int rank = layer_rank::retry;

  retry_layer(retry& owner, repeat allowed) noexcept : owner_(&owner), allowed_(allowed) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    if (!owner_->admit(scope.now, scope.by)) return std::move(done)(result<T>(retry::out_of_time()));
    next(scope.until(owner_->first_limit(scope.now, scope.by)),
         first_attempt<T, Next, Done, Args...>{owner_,
                                               &next,
                                               scope.executor,
                                               &scope.clock,
                                               scope.by,
                                               scope.cancel,
                                               scope.now,
                                               allowed_,
                                               {args...},
                                               std::move(done)},
         args...);
  }

 private:
  template <class T, class Next, class Done, class... Args>
  struct first_attempt {
    retry* owner;
    Next const* next;
    asio::any_io_executor executor;
    time_source* clock;
    deadline by;
    cancel_point* cancel;
    time_point began;
    repeat allowed;
    std::tuple<std::decay_t<Args>...> args;
    Done done;

    void operator()(result<T> got) {
      if (got) {
        owner->succeed();
        return std::move(done)(std::move(got));
      }
      auto const now = clock->now();
      failure last = got.error();
      auto one = owner->begin(began, by, allowed);
      if (!owner->again(one, last, now)) {
        return std::move(done)(result<T>(one.plan.sum_up(std::move(last), now)));
      }
      auto attempt = [inner = next, ex = executor, copy = std::move(args)](deadline limit) {
        return await_next<T>(*inner, ex, limit, copy);
      };
      auto rest = [self = owner, ex = executor, state = one, last, attempt = std::move(attempt)]() mutable {
        return self->template go_on<T>(ex, state, std::move(last), std::move(attempt));
      };
      auto early = [self = owner, state = one, last = std::move(last), now] {
        return self->cancelled(state, last, now);
      };
      call_scope const scope{executor, *clock, by, now, cancel};
      spawn_call<T>(scope, std::move(rest), std::move(done), std::move(early));
    }
  };

  retry* owner_;
  repeat allowed_;
};

}  // namespace detail

/// A `retry` as a layer; `allowed` says what of what is inside it may be repeated, and has no default. The
/// retry must outlive the stack.
[[nodiscard]] inline auto through(retry& owner, repeat allowed) {
  return detail::retry_layer(owner, allowed);
}

}  // namespace redoubt
