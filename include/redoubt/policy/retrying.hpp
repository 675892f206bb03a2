// SPDX-License-Identifier: BSL-1.0
//
// A client that tries again: `retry` around any client, itself a client, so that a policy can stand on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/run.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/policy/idempotent_command.hpp>
#include <redoubt/policy/redis_client.hpp>

namespace redoubt {

/// Options of a `retrying` client.
struct retrying_options {
  /// How often, how long, with which pauses. Default: no retry at all.
  retry_options retry{};
  /// What of `async_call` may be sent again. Default: only what Redis did not execute. `idempotent` is a
  /// promise about every command that goes through this client: GET, SET, DEL and EXPIRE, but not INCR, LPUSH
  /// or SET NX.
  repeat calls = repeat::not_executed;
  /// Seed of the pauses, for repeatable tests. Default: chosen by the system.
  std::optional<std::uint64_t> seed{};
  /// Shared with everybody who retries on this Redis; must outlive the client. Default none.
  retry_budget* budget = nullptr;
};

/// Repeats failed calls of a client. Each attempt has the client's own limits; all of them and the pauses fit
/// into `retry.total` and the caller's deadline. A limiter or an admission does not compile on it, because a
/// lost answer may already have counted.
///
/// - `async_call`: repeated by `calls`.
/// - `async_idempotent`: repeated whatever Redis may have done: an `idempotent_command`.
/// - `async_eval`: repeated only when the script was not executed.
/// - `async_pipeline`: sent once; its parts may have been executed.
///
/// Thread-safe. Must outlive the calls in flight; the client must outlive it.
template <redis_client Client>
class retrying {
 public:
  using options = retrying_options;
  /// See the concept of this name.
  static constexpr bool repeats_calls = true;

  /// Throws `option_error` when an option is out of range.
  retrying(Client& redis, options o) : client_(redis), calls_(o.calls), retry_(o.retry, o.budget, o.seed) {}

  retrying(retrying const&) = delete;
  retrying& operator=(retrying const&) = delete;

  [[nodiscard]] asio::any_io_executor get_executor() const { return client_.get_executor(); }
  [[nodiscard]] std::string_view key_prefix() const { return client_.key_prefix(); }
  /// The limit of all attempts together.
  [[nodiscard]] duration call_timeout() const noexcept { return retry_.worst_case(); }

  /// Sends a command, again if need be. Completion: `void(result<reply>)`. A budget is the limit of all
  /// attempts.
  template <class Token = asio::deferred_t>
  auto async_call(command cmd, call_options o = {}, Token&& token = Token{}) {
    return start(std::move(cmd), o, calls_, std::forward<Token>(token));
  }

  /// Sends a command that may be executed more than once. Completion as for `async_call`.
  template <class Token = asio::deferred_t>
  auto async_idempotent(idempotent_command cmd, call_options o = {}, Token&& token = Token{}) {
    return start(std::move(cmd).take(), o, repeat::idempotent, std::forward<Token>(token));
  }

  /// Passed on, sent once. Completion: one `result<reply>` per command.
  template <class Token = asio::deferred_t>
  auto async_pipeline(pipeline batch, call_options o = {}, Token&& token = Token{}) {
    o.by = earlier(o.by, deadline_after(get_executor(), call_timeout()));
    return client_.async_pipeline(std::move(batch), o, std::forward<Token>(token));
  }

  /// Runs a script, again only if it was not executed. Completion: `void(result<reply>)`.
  template <class Token = asio::deferred_t>
  auto async_eval(script const& body, keys k, args a, call_options o = {}, Token&& token = Token{}) {
    auto work = [this, body, k = std::move(k), a = std::move(a), o]() mutable {
      return eval(std::move(body), std::move(k), std::move(a), o);
    };
    return async_run<result<reply>>(get_executor(), std::move(work), std::forward<Token>(token));
  }

  /// Numbers so far.
  [[nodiscard]] retry_snapshot snapshot() const noexcept { return retry_.snapshot(); }

 private:
  template <class Token>
  auto start(command cmd, call_options o, repeat allowed, Token&& token) {
    auto work = [this, cmd = std::move(cmd), o, allowed]() mutable {
      return call(std::move(cmd), o, allowed);
    };
    return async_run<result<reply>>(get_executor(), std::move(work), std::forward<Token>(token));
  }

  asio::awaitable<result<reply>> call(command cmd, call_options o, repeat allowed) {
    asio::any_io_executor const executor = get_executor();
    // By reference: `cmd` lives in this frame for as long as the loop.
    auto attempt = [this, &cmd](deadline by) { return call_once(cmd, by); };
    asio::awaitable<result<reply>> all =
        retry_.template loop<reply>(executor, limit(executor, o), allowed, attempt);
    result<reply> got = co_await std::move(all);
    co_return got;
  }

  asio::awaitable<result<reply>> call_once(command cmd, deadline by) {
    call_options o;
    o.by = by;
    result<reply> got = co_await client_.async_call(std::move(cmd), o, asio::use_awaitable);
    co_return got;
  }

  asio::awaitable<result<reply>> eval(script body, keys k, args a, call_options o) {
    asio::any_io_executor const executor = get_executor();
    auto attempt = [this, &body, &k, &a](deadline by) { return eval_once(body, k, a, by); };
    asio::awaitable<result<reply>> all =
        retry_.template loop<reply>(executor, limit(executor, o), repeat::not_executed, attempt);
    result<reply> got = co_await std::move(all);
    co_return got;
  }

  asio::awaitable<result<reply>> eval_once(script const& body, keys k, args a, deadline by) {
    call_options o;
    o.by = by;
    result<reply> got = co_await client_.async_eval(body, std::move(k), std::move(a), o, asio::use_awaitable);
    co_return got;
  }

  static deadline limit(asio::any_io_executor const& executor, call_options const& o) {
    return o.budget ? earlier(o.by, deadline_after(executor, *o.budget)) : o.by;
  }

  Client& client_;
  repeat calls_;
  retry retry_;
};

}  // namespace redoubt
