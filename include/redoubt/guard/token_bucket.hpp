// SPDX-License-Identifier: BSL-1.0
//
// Keeps the requests that leave this process inside a provider's quota: 100 a minute and not 101, however
// many want to go.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/async/safe_callable.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/rate_meter.hpp>

namespace redoubt {

/// Numbers of a `token_bucket`.
struct token_bucket_snapshot {
  std::uint64_t granted = 0;   ///< Turns given, those that had to wait included.
  std::uint64_t waited = 0;    ///< Turns that lay ahead.
  std::uint64_t refused = 0;   ///< Requests whose turn came too late for them.
  std::uint64_t held_off = 0;  ///< Times that the provider asked for a pause.
};

/// A quota for outbound requests. Who comes too early waits for its turn, if that comes in time, and is
/// refused at once otherwise, with the time at which it would have come. Turns are given in the order of the
/// requests. In any stretch of `per` at most `limit` leave: also right after the start, and also when a
/// burst follows a quiet time. The provider counts arrivals, not departures; leave it some room.
///
/// Per process: share a quota of 100 among four processes as 25 each. Thread-safe, lock-free; must outlive
/// the operations in flight.
class token_bucket {
 public:
  struct options {
    /// Appears in failures. Default "token_bucket".
    std::string name = "token_bucket";
    /// The quota. No default.
    rate_options rate;
    /// The longest wait for a turn, whatever the deadline. It also bounds how many wait: as many as have a
    /// turn within it. Default 1 s. Range 0 (never wait) .. 1 h.
    duration max_wait = std::chrono::seconds(1);

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  /// Throws `option_error` when an option is out of range.
  explicit token_bucket(options o);
  token_bucket(token_bucket const&) = delete;
  token_bucket& operator=(token_bucket const&) = delete;

  /// A turn now, or a refusal (`rate_limited`, effect none, with `retry_after`).
  [[nodiscard]] result<void> try_acquire(time_point now);

  /// Waits for a turn, until `by` or `max_wait`, whichever comes first. Completion: `void(result<void>)`, on
  /// the token's executor, exactly once, never inside this call. `executor` provides the time.
  ///
  /// Errors, all with effect none: `rate_limited` at once when no turn comes in time; `cancelled` (the turn
  /// is not given to anybody else, so that cancellations never add up to more than the quota).
  template <class Token = asio::deferred_t>
  auto acquire(asio::any_io_executor executor, deadline by = {}, Token&& token = Token{}) {
    auto start = [this, executor, by] { return turn(executor, by); };
    return async_run<result<void>>(executor, std::move(start), std::forward<Token>(token));
  }

  /// Waits for a turn, calls `operation(by)` -> `awaitable<result<T>>`, and obeys a pause that its failure
  /// asks for
  /// (`remote_throttled` with `retry_after`). Completion: `void(result<T>)`, as for `acquire`.
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
    result<void> mine = co_await turn(executor, by);
    if (!mine) {
      result<T> none(mine.error());
      co_return none;
    }
    result<T> got = co_await operation(by);
    if (!got) on_failure(got.error(), redoubt::now(executor));
    co_return got;
  }

  /// Nothing leaves before `until`; then again at the steady rate, without a burst. For a provider that says
  /// so.
  void hold_off(time_point until) noexcept;

  /// Holds off for as long as `why` asks, if the provider said that it is asked too often.
  void on_failure(failure const& why, time_point now) noexcept;

  /// Numbers so far.
  [[nodiscard]] token_bucket_snapshot snapshot() const noexcept;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return name_; }
  /// The longest that it holds a request back.
  [[nodiscard]] duration max_wait() const noexcept { return max_wait_; }

 private:
  asio::awaitable<result<void>> turn(asio::any_io_executor executor, deadline by);
  [[nodiscard]] rate_meter::answer take(time_point now, time_point latest) noexcept;
  [[nodiscard]] failure refusal(duration wait) const;

  std::string name_;
  duration max_wait_;
  rate_meter meter_;
  std::shared_ptr<failure_detail const> detail_;
  std::atomic<time_point> state_{rate_meter::full};
  detail::counter granted_, waited_, refused_, held_off_;
};

}  // namespace redoubt
