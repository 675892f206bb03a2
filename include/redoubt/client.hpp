// SPDX-License-Identifier: BSL-1.0
//
// The client: every call ends by its deadline and is sent at most once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <redoubt/async/time_source.hpp>
#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/net/call_operation.hpp>
#include <redoubt/net/client_state.hpp>
#include <redoubt/net/options.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/decode.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/script.hpp>

namespace redoubt {

/// One result per command of a pipeline or a transaction, in order.
using replies = std::vector<result<reply>>;

/// A Redis client over one multiplexed connection (or a small fixed number of them).
///
/// Promise: every operation completes exactly once, by its deadline, never inside the initiating call; a
/// command is sent at most once; a reply never reaches another call; a full bound answers at once.
///
/// @par Completion  Every operation is an Asio initiating function and takes any completion token last
/// (default: `deferred`, which can be awaited as it is). It completes on the token's executor with a value,
/// never with an exception.
/// @par Cancellation  Any cancellation type ends the call at once with `errc::cancelled`; its effect says
/// whether the command may have reached Redis. The connection stays usable.
/// @par Threads  Every member may be called from any thread at any time, except the destructor, which must
/// not run at the same time as another member.
/// @par Lifetime  The constructor does no I/O and starts no thread; the connection is made by the first call.
/// Destroying the client ends what is under way with `errc::closed`. The executor's context must outlive the
/// client. A connected client keeps its context's `run()` from returning; `async_close` or destruction lets
/// it go.
/// @par Fork  A client belongs to the process that made it. In a child that was forked every call is refused
/// with `errc::forked`, effect none, and nothing is written to the parent's connection, nor when the child
/// destroys the client. As for any Asio program, a child that goes on to use the context calls
/// `notify_fork(fork_child)` of it first; that ends the child's copies of the calls under way with
/// `errc::closed`.
class client {
 public:
  using executor_type = asio::any_io_executor;

  /// @throws std::invalid_argument naming the option that is out of range and its value (never a secret).
  client(asio::any_io_executor executor, client_options options);

  /// The same, on a context's own executor.
  template <class Context>
    requires std::derived_from<Context, asio::execution_context>
  client(Context& context, client_options options)
      : client(asio::any_io_executor(context.get_executor()), std::move(options)) {}

  client(client const&) = delete;
  client& operator=(client const&) = delete;
  ~client();

  [[nodiscard]] executor_type get_executor() const noexcept { return state_->executor(); }

  /// `client_options::key_prefix`.
  [[nodiscard]] std::string_view key_prefix() const noexcept { return state_->options().key_prefix; }

  /// `name` with the prefix before it: for keys in commands, which the client cannot find by itself.
  [[nodiscard]] std::string key(std::string_view name) const {
    return std::string(key_prefix()).append(name);
  }

  /// `timeouts.call`: the longest that a call without a budget of its own takes.
  [[nodiscard]] duration call_timeout() const noexcept { return state_->options().timeouts.call; }

  /// Sends one command. Completion: `void(result<reply>)`; an error that Redis answers with is a failure
  /// (`errc::server_error`).
  /// @par Deadline  Without a budget: `timeouts.call` in all, at most `timeouts.connect` of it before the
  /// connection is ready and `timeouts.attempt` after. With one: the budget. `options.by` only tightens.
  /// @par Effect  `none`: never executed. `unknown`: may be executed, now or later.
  /// @par Errors  All of `errc` except the guards' own; commands that cannot share a connection end with
  /// `errc::refused_command`.
  template <class Token = asio::deferred_t>
  auto async_call(command cmd, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<reply>)>(detail::start_call{state_}, token, std::move(cmd),
                                                            options);
  }

  /// Sends commands together, under one deadline. Completion: `void(replies)`, always one result per command;
  /// those that were answered keep their answer when the rest fails. An empty pipeline completes with no
  /// results.
  template <class Token = asio::deferred_t>
  auto async_pipeline(pipeline batch, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(replies)>(detail::start_pipeline{state_}, token, std::move(batch),
                                                      options);
  }

  /// Sends MULTI, the commands and EXEC in one piece. Completion: `void(result<replies>)`: a failure when the
  /// block was not executed (the refusal of one of its commands, effect none) or when it is unknown whether
  /// it was; else one result per command.
  template <class Token = asio::deferred_t>
  auto async_transaction(transaction block, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<replies>)>(detail::start_transaction{state_}, token,
                                                              std::move(block), options);
  }

  /// Runs a script: EVALSHA first; EVAL only after the server has said that it does not know the script,
  /// inside the same deadline. No other failure is ever answered by sending again. The prefix is put before
  /// each key. Completion: `void(result<reply>)`.
  template <class Token = asio::deferred_t>
  auto async_eval(script const& body, keys k, args a, call_options options = {}, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(result<reply>)>(
        detail::start_eval{state_}, token, detail::eval_request{body, std::move(k), std::move(a)}, options);
  }

  /// Refuses new calls (`errc::closed`), lets those under way end for at most `drain`, ends the rest with
  /// `errc::closed`, and completes. Any number of times, in every state. Completion: `void()`.
  template <class Token = asio::deferred_t>
  auto async_close(duration drain = duration::zero(), Token&& token = Token{}) {
    return asio::async_initiate<Token, void()>(detail::start_close{state_}, token, drain);
  }

  /// The calls that have not ended: command, age, phase. For a look at a service that hangs. Completion:
  /// `void(std::vector<pending_info>)`.
  template <class Token = asio::deferred_t>
  auto async_pending(Token&& token = Token{}) {
    return asio::async_initiate<Token, void(std::vector<pending_info>)>(detail::start_pending{state_}, token);
  }

  /// Counters as of the last turn of the connections. No I/O, never waits for them.
  [[nodiscard]] client_snapshot snapshot() const { return state_->snapshot(); }

 private:
  std::shared_ptr<detail::client_state> state_;
};

}  // namespace redoubt
