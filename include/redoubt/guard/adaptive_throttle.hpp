// SPDX-License-Identifier: BSL-1.0
//
// Sends an overloaded service no more than it takes. A breaker knows open and closed; this refuses a share,
// which follows what the service accepts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/async/safe_callable.hpp>
#include <redoubt/core/brief_mutex.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/random_seeds.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/accept_ratio.hpp>
#include <redoubt/guard/layer.hpp>
#include <redoubt/guard/layer_coroutine.hpp>

namespace redoubt {

/// Numbers of an `adaptive_throttle`.
struct adaptive_throttle_snapshot {
  std::uint64_t admitted = 0;  ///< Sent on.
  std::uint64_t refused = 0;   ///< Refused here.
  std::uint64_t accepted =
      0;                     ///< Ended in an answer of the service, also in one that says that we are wrong.
  std::uint64_t failed = 0;  ///< Ended without one, or in one that says that the service is overloaded.
  double refused_share = 0;  ///< The share that is refused at the moment, as of the last result.
};

/// Refuses a share of the operations on one service, by the formula of Google's SRE book:
/// max(0, (requests - K * accepts) / (requests + 1)) over a rolling window. While the service accepts at
/// least one of K requests nothing is refused. A refusal (`rate_limited`) costs nanoseconds, names no time to
/// come back, and is not repeated by a `retry`.
///
/// Accepted is every answer, errors of the caller included. Not accepted is what does not answer, and 429 or
/// 5xx. Our own refusals further in, what the operation threw, and the caller's cancellations say nothing and
/// are not counted.
///
/// Thread-safe; must outlive the operations in flight. While nothing is refused, admission is one atomic
/// read.
class adaptive_throttle {
 public:
  struct options {
    /// Appears in failures. Default "adaptive_throttle".
    std::string name = "adaptive_throttle";
    /// The formula's parameters.
    accept_ratio_options ratio{};
    /// Seed of the choices, for repeatable tests. Default: chosen by the system.
    std::optional<std::uint64_t> seed{};

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  explicit adaptive_throttle(options o);
  adaptive_throttle() : adaptive_throttle(options{}) {}
  adaptive_throttle(adaptive_throttle const&) = delete;
  adaptive_throttle& operator=(adaptive_throttle const&) = delete;

  /// A value when the operation may be started; its end must then be given to `on_success` or `on_failure`.
  /// Otherwise `rate_limited`, effect none.
  [[nodiscard]] result<void> try_enter(time_point now);

  /// An operation has ended with a value. `now` may be the time at which it began.
  void on_success(time_point now) noexcept { record(now, true); }
  /// An operation has ended with `why`; what says nothing about the service is left out.
  void on_failure(failure const& why, time_point now) noexcept;

  /// What a failure says about the service: true, it answered; false, it did not or is overloaded; nothing,
  /// when it was not asked.
  [[nodiscard]] static std::optional<bool> accepted(failure const& why) noexcept;

  /// Calls `operation(by)` -> `awaitable<result<T>>`, or refuses. Completion: `void(result<T>)`, on the
  /// token's executor, exactly once, never inside this call. `executor` runs the operation and provides the
  /// time. An operation that throws counts as `load_failed`.
  template <class T, safe_callable Operation, class Token = asio::deferred_t>
  auto run(asio::any_io_executor executor, deadline by, Operation&& operation, Token&& token = Token{}) {
    auto start = [this, executor, by, operation = std::forward<Operation>(operation)]() mutable {
      return pass<T>(executor, by, std::move(operation));
    };
    return async_run<result<T>>(executor, std::move(start), std::forward<Token>(token));
  }

  /// The same as a coroutine, for layers that are built on it. Not for a temporary closure inside a
  /// `co_await` expression.
  template <class T, class Operation>
  asio::awaitable<result<T>> pass(asio::any_io_executor executor, deadline by, Operation operation) {
    auto const now = redoubt::now(executor);
    result<void> const mine = try_enter(now);
    if (!mine) {
      result<T> none(mine.error());
      co_return none;
    }
    result<T> got = co_await detail::value_of<T>(operation, by);
    got ? on_success(now) : on_failure(got.error(), now);
    co_return got;
  }

  /// Numbers so far.
  [[nodiscard]] adaptive_throttle_snapshot snapshot() const;
  /// How it decides.
  [[nodiscard]] accept_ratio_options const& ratio() const noexcept { return options_; }
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return name_; }

 private:
  void record(time_point now, bool accepted) noexcept;

  std::string name_;
  accept_ratio_options options_;
  random_seeds seeds_;
  std::shared_ptr<failure_detail const> detail_;
  detail::counter admitted_, refused_, accepted_, failed_;
  std::atomic<double> share_{0};
  detail::brief_mutex mutable mutex_;
  accept_ratio ratio_;  // under the mutex
};

namespace detail {

/// An `adaptive_throttle` in a stack.
class throttle_layer {
 public:
  static constexpr int rank = layer_rank::throttle;

  explicit throttle_layer(adaptive_throttle& owner) noexcept : owner_(&owner) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    result<void> const mine = owner_->try_enter(scope.now);
    if (!mine) return std::move(done)(result<T>(mine.error()));
    auto ended = [owner = owner_, began = scope.now, done = std::move(done)](result<T> got) mutable {
      got ? owner->on_success(began) : owner->on_failure(got.error(), began);
      std::move(done)(std::move(got));
    };
    next(scope, std::move(ended), args...);
  }

 private:
  adaptive_throttle* owner_;
};

}  // namespace detail

/// An `adaptive_throttle` as a layer. It must outlive the stack.
[[nodiscard]] inline auto through(adaptive_throttle& owner) { return detail::throttle_layer(owner); }

}  // namespace redoubt
