// SPDX-License-Identifier: BSL-1.0
//
// Tries an asynchronous operation again, where that is safe and fits into the time. Off unless asked for.
#pragma once

#include <cstdint>
#include <optional>
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
#include <redoubt/guard/retry_budget.hpp>

namespace redoubt {

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
  /// have been executed. `retries_exhausted` when there was no time for the first.
  template <class T, safe_callable Attempt, class Token = asio::deferred_t>
  auto run(asio::any_io_executor executor, deadline by, repeat allowed, Attempt&& attempt,
           Token&& token = Token{}) {
    auto start = [this, executor, by, allowed, attempt = std::forward<Attempt>(attempt)]() mutable {
      return loop<T>(executor, by, allowed, std::move(attempt));
    };
    return async_run<result<T>>(executor, std::move(start), std::forward<Token>(token));
  }

  /// The same as a coroutine, for layers that are built on it. Not for a temporary closure inside a
  /// `co_await` expression.
  template <class T, class Attempt>
  asio::awaitable<result<T>> loop(asio::any_io_executor executor, deadline by, repeat allowed,
                                  Attempt attempt) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    timer clock(executor);
    random_source random = seeds_.next();
    retry_plan plan(options_, clock.now(), by);
    operations_.add();
    if (plan.limit().passed(clock.now())) {
      no_time_.add();
      result<T> none(out_of_time());
      co_return none;
    }
    for (;;) {
      attempts_.add();
      result<T> got = co_await attempt(plan.attempt_limit(clock.now()));
      if (got) {
        succeeded_.add();
        if (budget_ != nullptr) budget_->on_success();
        co_return got;
      }
      retry_decision next = plan.after(got.error(), allowed, clock.now(), random);
      if (next.what == retry_decision::kind::again && budget_ != nullptr &&
          !budget_->try_take(got.error(), clock.now())) {
        next.what = retry_decision::kind::no_budget;
      }
      if (next.what == retry_decision::kind::again) {
        boost::system::error_code stopped;
        co_await clock.async_wait_until(next.at, asio::redirect_error(asio::use_awaitable, stopped));
        if (!stopped) continue;
      }
      failure last = got.error();
      if (next.what == retry_decision::kind::again) last.code = errc::cancelled;  // during the pause
      count(next.what);
      result<T> out(plan.sum_up(std::move(last), clock.now()));
      co_return out;
    }
  }

  /// The longest that an operation can take without a deadline.
  [[nodiscard]] duration worst_case() const noexcept { return options_.total; }
  /// The most attempts of one operation.
  [[nodiscard]] std::uint32_t attempts() const noexcept { return options_.retries + 1; }

  /// Numbers so far.
  [[nodiscard]] retry_snapshot snapshot() const noexcept;

 private:
  [[nodiscard]] static failure out_of_time() noexcept;
  void count(retry_decision::kind what) noexcept;

  options options_;
  random_seeds seeds_;
  retry_budget* budget_ = nullptr;
  detail::counter operations_, attempts_, succeeded_, not_repeatable_, none_left_, no_time_, no_budget_;
};

}  // namespace redoubt
