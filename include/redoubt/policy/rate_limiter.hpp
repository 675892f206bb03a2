// SPDX-License-Identifier: BSL-1.0
//
// How often something may be tried. One script, one round trip, one key; the fail mode is part of the type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/run.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/events.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/policy/decision.hpp>
#include <redoubt/policy/redis_client.hpp>

namespace redoubt {

/// Counts attempts in a window that begins with the first one and is not prolonged by later ones, refused
/// ones included. Exact per window; across the border of two windows up to `2 * limit - 1` attempts can be
/// admitted within one window's length, so "five a minute" admits nine in the worst rolling minute.
struct fixed_window {
  /// INCR, and PEXPIRE when the count has no life of its own or a longer one than the window: so a counter
  /// can never stay for ever, whoever made it. Answers the count and what is left of the window.
  [[nodiscard]] static script const& code();
  /// The script's arguments.
  [[nodiscard]] static args arguments(duration window);
  /// Reads the script's answer; `unexpected_reply` when it is none.
  [[nodiscard]] static result<limiter_answer> read(reply const& answer, std::uint32_t limit, duration window);
};

/// Options of every `rate_limiter`.
struct rate_limiter_options {
  /// Source of its events. Default "rate_limiter".
  std::string name = "rate_limiter";
  /// Put before each id, after the client's own `key_prefix`. No default: limiters must not share counters by
  /// accident.
  required<std::string> key;
  /// Attempts admitted per window and id. No default. Range 1 .. 2^32-1.
  required<std::uint32_t> limit;
  /// Length of the window. No default. Range 1 ms .. 366 days; whole milliseconds count.
  required<duration> window;
  /// Told about refusals and about Redis being unavailable; must outlive the limiter. Default: nobody.
  event_sink* events = nullptr;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of a `rate_limiter`. When nothing is in flight: `requests == admitted + degraded + refused +
/// unavailable + errors`.
struct rate_limiter_snapshot {
  std::uint64_t requests = 0;      ///< `admit` calls started.
  std::uint64_t admitted = 0;      ///< Under the limit.
  std::uint64_t degraded = 0;      ///< Admitted unchecked, because Redis was unavailable (fail open).
  std::uint64_t refused = 0;       ///< Over the limit: the 429s.
  std::uint64_t unavailable = 0;   ///< Not checked, hence not admitted (fail closed): the 503s.
  std::uint64_t errors = 0;        ///< `open_verdict::error` (fail open).
  std::uint64_t redis_errors = 0;  ///< Calls that failed, cancelled ones not counted.
};

namespace detail {

struct rate_limiter_counters {
  counter requests, admitted, degraded, refused, unavailable, errors, redis_errors;
  void count(decision<fail_open> const& d) noexcept;
  void count(decision<fail_closed> const& d) noexcept;
  [[nodiscard]] rate_limiter_snapshot read() const noexcept;
};

}  // namespace detail

/// Admits at most `limit` attempts per window and id.
///
///     rate_limiter<fixed_window, fail_closed> login(redis, {.key = "login:", .limit = 5, .window = 60s});
///     switch ((co_await login.admit(account)).verdict()) { ... }
///
/// The id is data of any bytes, but two spellings of one account are two ids: normalise it (case, spaces,
/// Unicode form) before asking. Ask before the password is looked at. A limit per account alone lets anybody
/// lock a known account out; add one per source of requests.
///
/// An attempt is counted at most once and never repeated: when the answer is lost, Redis may have counted it.
/// Without an answer the fail mode decides; see `fail_open` and `fail_closed`. No exception leaves it for
/// anything Redis does.
///
/// Thread-safe. Must outlive the calls in flight; the client and the event sink must outlive it.
template <class Algorithm, fail_mode FailMode, redis_client Client = client>
  requires(!repeats_calls<Client>)  // a lost answer may have counted: asking again would count twice
class rate_limiter {
 public:
  using options = rate_limiter_options;
  using snapshot_type = rate_limiter_snapshot;
  using decision_type = decision<FailMode>;

  /// Throws `option_error` when an option is out of range.
  rate_limiter(Client& redis, options o) : client_(redis), options_((o.validate(), std::move(o))) {}

  rate_limiter(rate_limiter const&) = delete;
  rate_limiter& operator=(rate_limiter const&) = delete;

  /// Counts one attempt of `id` and decides. Completion: `void(decision<FailMode>)`, on the token's executor,
  /// exactly once, never inside this call, and not later than `by`; without `by`, within `worst_case()`.
  template <class Token = asio::deferred_t>
  auto admit(std::string_view id, deadline by = {}, Token&& token = Token{}) {
    std::string key = options_.key;
    key += id;
    return async_run<decision_type>(
        client_.get_executor(),
        [this, key = std::move(key), by]() mutable { return run(std::move(key), by); },
        std::forward<Token>(token));
  }

  /// The longest that `admit` can take without a deadline: one call.
  [[nodiscard]] duration worst_case() const { return client_.call_timeout(); }

  /// Numbers so far.
  [[nodiscard]] rate_limiter_snapshot snapshot() const noexcept { return counters_.read(); }

 private:
  asio::awaitable<decision_type> run(std::string key, deadline by) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    counters_.requests.add();

    keys where(key);
    args what = Algorithm::arguments(options_.window);
    call_options call;
    call.by = by;
    result<reply> got = co_await client_.async_eval(Algorithm::code(), std::move(where), std::move(what),
                                                    call, asio::use_awaitable);

    decision_type out = decide(got);
    counters_.count(out);
    co_return out;
  }

  decision_type decide(result<reply> const& got) {
    result<limiter_answer> answer(limiter_answer{});
    if (got) {
      answer = Algorithm::read(*got, options_.limit, options_.window);
    } else {
      answer = got.error();
    }
    if (answer) {
      if (!answer->admitted) tell(event_kind::limiter_refused, nullptr);
      return decision_type(*answer, options_.limit);
    }
    failure why = answer.error();
    if (why.group() != failure_class::cancelled) {
      counters_.redis_errors.add();
      tell(event_kind::limiter_unavailable, &why);
    }
    return decision_type(std::move(why), options_.limit);
  }

  void tell(event_kind kind, failure const* cause) const noexcept {
    if (options_.events != nullptr)
      options_.events->on(event{.kind = kind, .source = options_.name, .cause = cause});
  }

  Client& client_;
  options const options_;
  detail::rate_limiter_counters counters_;
};

}  // namespace redoubt
