// SPDX-License-Identifier: BSL-1.0
//
// Keeps the requests that leave this process inside a provider's quota: 100 a minute and not 101, however
// many want to go.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/async/safe_callable.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/striped_counter.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/rate_meter.hpp>
#include <redoubt/guard/layer.hpp>
#include <redoubt/guard/layer_coroutine.hpp>

namespace redoubt {

namespace detail {
class token_bucket_layer;
}

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
    /// The longest pause that an answer of the provider can ask for: one wrong answer, or a hostile one, does
    /// not keep everybody off for a year. Default 1 h. Range 1 ms .. 24 h.
    duration max_hold_off = std::chrono::hours(1);

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
  /// asks for (`remote_throttled` with `retry_after`), up to `max_hold_off`. Completion: `void(result<T>)`,
  /// as for `acquire`. An operation that throws counts as `load_failed`.
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
    result<void> waited = co_await turn(executor, by);
    if (!waited) {
      result<T> none(waited.error());
      co_return none;
    }
    result<T> got = co_await detail::value_of<T>(operation, by);
    if (!got) on_failure(got.error(), redoubt::now(executor));
    co_return got;
  }

  /// Nothing leaves before `until`, nor who waits for an earlier turn: that takes a new one, or is refused
  /// when none comes in time. Then again at the steady rate, without a burst. For a provider that says so.
  void hold_off(time_point until) noexcept;

  /// Holds off for as long as `why` asks, up to `max_hold_off`, if the provider said that it is asked too
  /// often.
  void on_failure(failure const& why, time_point now) noexcept;

  /// Numbers so far.
  [[nodiscard]] token_bucket_snapshot snapshot() const noexcept;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return name_; }
  /// The longest that it holds a request back.
  [[nodiscard]] duration max_wait() const noexcept { return max_wait_; }

  /// The quota.
  [[nodiscard]] rate_options const& rate() const noexcept { return rate_; }

 private:
  friend class detail::token_bucket_layer;

  asio::awaitable<result<void>> turn(asio::any_io_executor executor, deadline by);
  /// For a turn that lies ahead, or a later one up to `latest`.
  asio::awaitable<result<void>> wait(asio::any_io_executor executor, time_point since, time_point turn,
                                     time_point latest);
  [[nodiscard]] time_point latest(time_point now, deadline by) const noexcept {
    return std::min(by.at(), saturating_add(now, max_wait_));
  }
  [[nodiscard]] rate_meter::answer take(time_point now, time_point latest) noexcept;
  [[nodiscard]] failure refusal(duration wait) const;

  std::string name_;
  duration max_wait_;
  duration max_hold_off_;
  rate_options rate_;
  rate_meter meter_;
  std::shared_ptr<failure_detail const> detail_;
  std::atomic<time_point> state_{rate_meter::full};
  std::atomic<time_point> held_until_{rate_meter::full};
  detail::striped_counter granted_;
  detail::counter waited_, refused_, held_off_;
};

namespace detail {

/// A `token_bucket` in a stack. A turn that is now costs no coroutine and no allocation.
class token_bucket_layer {
 public:
  static constexpr int rank = layer_rank::token_bucket;

  explicit token_bucket_layer(token_bucket& owner) noexcept : owner_(&owner) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    auto const latest = owner_->latest(scope.now, scope.by);
    auto const mine = owner_->take(scope.now, latest);
    if (!mine.granted) return std::move(done)(result<T>(owner_->refusal(mine.at - scope.now)));
    auto ended = [owner = owner_, clock = &scope.clock, done = std::move(done)](result<T> got) mutable {
      if (!got) owner->on_failure(got.error(), clock->now());
      std::move(done)(std::move(got));
    };
    if (mine.at <= scope.now) return next(scope, std::move(ended), args...);
    auto wait = [owner = owner_, executor = scope.executor, since = scope.now, at = mine.at, latest] {
      return owner->wait(executor, since, at, latest);
    };
    // Started from here, so that a limit around this knows what the inside waits for.
    auto go_on = [inner = &next, executor = scope.executor, by = scope.by, cancel = scope.cancel,
                  ended = std::move(ended),
                  copy = std::tuple<std::decay_t<Args>...>(args...)](result<void> waited) mutable {
      if (!waited) return std::move(ended)(result<T>(waited.error()));
      auto const later = call_scope::begin(executor, by, cancel);
      std::apply([&](auto const&... each) { (*inner)(later, std::move(ended), each...); }, copy);
    };
    spawn_call<void>(scope, std::move(wait), std::move(go_on));
  }

 private:
  token_bucket* owner_;
};

}  // namespace detail

/// A `token_bucket` as a layer. It must outlive the stack.
[[nodiscard]] inline auto through(token_bucket& owner) { return detail::token_bucket_layer(owner); }

}  // namespace redoubt
