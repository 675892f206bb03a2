// SPDX-License-Identifier: BSL-1.0
//
// A client for tests of an application's own routes: the operations of `redoubt::client`, answered by a
// `fake_server` without any connection. It ends calls when and how the real client would, in real or in
// virtual time.
//
//     testing::world w;
//     testing::fake_client redis(w.get_executor(), {.key_prefix = "shop:"});
//     shop<testing::fake_client> routes(redis, table);
//     redis.redis().pause();                                       // from here on Redis is frozen
//     auto answer = w.run(routes.get_price("A-1"));
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/net/call_operation.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/script.hpp>
#include <redoubt/testing/fake_client_state.hpp>
#include <redoubt/testing/fake_server.hpp>

namespace redoubt::testing {

/// Satisfies `redoubt::redis_client`. What it does in an outage of its server:
///
/// | server                       | a call ends  | code               | effect  |
/// |------------------------------|--------------|--------------------|---------|
/// | paused                       | at its limit | deadline_exceeded  | unknown |
/// | paused, and a reply overdue  | at its limit | deadline_exceeded  | none    |
/// | killed, a new call           | at once      | connection_refused | none    |
/// | killed, a call under way     | at once      | connection_lost    | unknown |
/// | any state that Redis answers | at once      | server_error       | none    |
///
/// A call without a budget is limited by `attempt_timeout`. There is no reconnect pause: a call after a
/// restart succeeds.
/// @par Threads  Not thread-safe: use it, and the server, from the executor's one thread or strand.
/// @par Lifetime  Destroying it ends what is under way with `errc::closed`. The executor's context must
/// outlive it.
class fake_client {
 public:
  using executor_type = asio::any_io_executor;
  /// One result per command of a pipeline or a transaction.
  using replies = std::vector<result<reply>>;

  /// @throws std::invalid_argument when a timeout is not positive.
  explicit fake_client(asio::any_io_executor executor, fake_client_options options = {});

  /// The same, on a context's own executor.
  template <class Context>
    requires std::derived_from<Context, asio::execution_context>
  explicit fake_client(Context& context, fake_client_options options = {})
      : fake_client(asio::any_io_executor(context.get_executor()), std::move(options)) {}

  fake_client(fake_client const&) = delete;
  fake_client& operator=(fake_client const&) = delete;
  ~fake_client();

  [[nodiscard]] executor_type get_executor() const noexcept { return state_->executor(); }
  /// `fake_client_options::key_prefix`.
  [[nodiscard]] std::string_view key_prefix() const noexcept { return state_->options().key_prefix; }
  /// `name` with the prefix before it.
  [[nodiscard]] std::string key(std::string_view name) const {
    return std::string(key_prefix()).append(name);
  }
  /// `fake_client_options::call_timeout`.
  [[nodiscard]] duration call_timeout() const noexcept { return state_->options().call_timeout; }
  /// The time on the executor's clock; what the functions of `redis()` want.
  [[nodiscard]] time_point now() const { return redoubt::now(state_->executor()); }

  /// Sends one command. Completion: `void(result<reply>)`. Deadline, effect, errors and cancellation are
  /// those of `redoubt::client::async_call`.
  template <class Token = asio::deferred_t>
  auto async_call(command cmd, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<reply>)>(detail::start_fake_call{state_}, token,
                                                            std::move(cmd), options);
  }

  /// Sends commands together, under one deadline. Completion: `void(replies)`, one result per command.
  template <class Token = asio::deferred_t>
  auto async_pipeline(pipeline batch, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(replies)>(detail::start_fake_pipeline{state_}, token,
                                                      std::move(batch), options);
  }

  /// Runs commands as one MULTI..EXEC block. Completion: `void(result<replies>)`.
  template <class Token = asio::deferred_t>
  auto async_transaction(transaction block, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<replies>)>(detail::start_fake_transaction{state_}, token,
                                                              std::move(block), options);
  }

  /// Runs a script: EVALSHA first, EVAL after NOSCRIPT, inside the same deadline. The prefix is put before
  /// each key. Completion: `void(result<reply>)`.
  template <class Token = asio::deferred_t>
  auto async_eval(script const& body, keys k, args a, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<reply>)>(
        detail::start_fake_eval{state_}, token, detail::fake_eval_request{body, std::move(k), std::move(a)},
        options);
  }

  /// The server: its states, faults, data and log. Changes take effect at once, also for calls under way.
  [[nodiscard]] fake_server& redis() noexcept { return state_->server(); }
  /// @copydoc redis
  [[nodiscard]] fake_server const& redis() const noexcept { return state_->server(); }

  /// The next call ends with this failure, without reaching the server. Several are used up in the order
  /// given.
  void fail_next(failure why) { state_->fail_next(std::move(why)); }
  /// Every call ends with this failure, without reaching the server, until `heal()`.
  void fail_all(failure why) { state_->fail_all(std::move(why)); }
  /// Forgets `fail_all`, `fail_next` and `lose_next_reply`.
  void heal() { state_->heal(); }
  /// The next call that is sent is executed, but its reply is lost: `connection_lost`, effect unknown.
  void lose_next_reply() { state_->lose_next_reply(); }

  /// Every command that was asked for, in order, with its arguments: also those that were refused or failed.
  /// A script appears as EVALSHA, a transaction with its MULTI and EXEC. The first 65536 are kept.
  [[nodiscard]] std::vector<std::vector<std::string>> const& calls() const noexcept {
    return state_->calls();
  }
  /// Forgets them.
  void clear_calls() { state_->clear_calls(); }

 private:
  std::shared_ptr<detail::fake_client_state> state_;
};

}  // namespace redoubt::testing
