// SPDX-License-Identifier: BSL-1.0
//
// What stands behind `client`: its connections and its bounds, and the initiations of its operations. The
// bodies are compiled once; only what knows a handler's type is a template.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/net/call_operation.hpp>
#include <redoubt/net/event_switch.hpp>
#include <redoubt/net/fork_count.hpp>
#include <redoubt/net/options.hpp>
#include <redoubt/net/snapshot.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/script.hpp>

namespace redoubt {

class time_source;

namespace detail {

class connection;

/// A script call before it is encoded.
struct eval_request {
  script body;
  keys k;
  args a;
};

/// See the head of this file. Thread-safe.
class client_state : public std::enable_shared_from_this<client_state> {
 public:
  using close_handler = asio::any_completion_handler<void()>;
  using pending_handler = asio::any_completion_handler<void(std::vector<pending_info>)>;

  client_state(asio::any_io_executor executor, client_options options);
  ~client_state();

  [[nodiscard]] asio::any_io_executor const& executor() const noexcept { return executor_; }
  [[nodiscard]] client_options const& options() const noexcept { return options_; }

  /// Chooses the connection for a new call.
  void assign(pending_call* call) noexcept;
  /// Takes the call over: sends it, or refuses it and completes it later.
  void start(pending_call* call, call_options const& options);
  /// Completes the call with a refusal, later.
  void refuse(pending_call* call, errc code, std::string_view note);
  /// Gives the call a key and says how to cancel it.
  [[nodiscard]] std::pair<std::weak_ptr<connection>, std::uint64_t> make_cancellable(pending_call* call);

  void close(duration drain, close_handler done);
  void pending(pending_handler done);
  void shut() noexcept;
  [[nodiscard]] client_snapshot snapshot() const;

 private:
  asio::any_io_executor executor_;
  client_options options_;
  time_source* clock_;
  std::shared_ptr<failure_detail const> place_;
  std::shared_ptr<load_gate> gate_;
  std::shared_ptr<event_switch> events_;
  std::vector<std::shared_ptr<connection>> connections_;
  std::uint32_t const born_ = fork_count();
  std::atomic<bool> closing_ = false;
  std::atomic<std::uint32_t> turn_ = 0;
  std::atomic<std::uint64_t> next_key_ = 1;
  std::atomic<std::uint64_t> refused_ = 0;
};

/// Cancels through a weak reference: a signal that outlives the client does nothing.
void cancel_call(std::weak_ptr<connection> const& where, std::uint64_t key);

void prepare(pending_call& call, command&& cmd);
void prepare(pending_call& call, pipeline&& batch);
void prepare(pending_call& call, transaction&& block);

/// The only reply of a call, or why there is none.
[[nodiscard]] result<reply> single_result(pending_call& call);
[[nodiscard]] std::vector<result<reply>> pipeline_result(pending_call& call);
[[nodiscard]] result<std::vector<result<reply>>> transaction_result(pending_call& call);

struct single_outcome {
  static bool again(pending_call&) noexcept { return false; }
  static result<reply> take(pending_call& call) { return single_result(call); }
};
struct pipeline_outcome {
  static bool again(pending_call&) noexcept { return false; }
  static std::vector<result<reply>> take(pending_call& call) { return pipeline_result(call); }
};
struct transaction_outcome {
  static bool again(pending_call&) noexcept { return false; }
  static result<std::vector<result<reply>>> take(pending_call& call) { return transaction_result(call); }
};
/// Keeps what EVAL needs until the server has decided about EVALSHA. Not the client's state: that holds the
/// connection which holds the call, and whoever destroys the context destroys no circle.
struct eval_outcome {
  std::string key_prefix;
  eval_request request;
  bool sent_body = false;
  bool again(pending_call& call);
  static result<reply> take(pending_call& call) { return single_result(call); }
};

/// Common to all initiations: makes the operation, connects its cancellation slot, starts it.
struct start_base {
  using executor_type = asio::any_io_executor;
  std::shared_ptr<client_state> state;
  [[nodiscard]] executor_type get_executor() const noexcept { return state->executor(); }

  template <class Handler, class Outcome, class What>
  void launch(Handler&& handler, Outcome outcome, What&& what, call_options const& options) const {
    using operation = call_operation<std::decay_t<Handler>, Outcome>;
    auto* call = operation::create(std::forward<Handler>(handler), state->executor(), std::move(outcome));
    prepare(*call, std::forward<What>(what));
    state->assign(call);
    auto slot = asio::get_associated_cancellation_slot(call->handler());
    if (slot.is_connected()) {
      auto target = state->make_cancellable(call);
      slot.assign([target = std::move(target)](asio::cancellation_type type) {
        if (type != asio::cancellation_type::none) cancel_call(target.first, target.second);
      });
    }
    state->start(call, options);
  }
};

struct start_call : start_base {
  template <class Handler>
  void operator()(Handler&& handler, command cmd, call_options options) const {
    launch(std::forward<Handler>(handler), single_outcome{}, std::move(cmd), options);
  }
};
struct start_pipeline : start_base {
  template <class Handler>
  void operator()(Handler&& handler, pipeline batch, call_options options) const {
    launch(std::forward<Handler>(handler), pipeline_outcome{}, std::move(batch), options);
  }
};
struct start_transaction : start_base {
  template <class Handler>
  void operator()(Handler&& handler, transaction block, call_options options) const {
    launch(std::forward<Handler>(handler), transaction_outcome{}, std::move(block), options);
  }
};
struct start_eval : start_base {
  template <class Handler>
  void operator()(Handler&& handler, eval_request request, call_options options) const {
    auto first = eval_command(request.body, request.k, request.a, state->options().key_prefix, true);
    launch(std::forward<Handler>(handler), eval_outcome{state->options().key_prefix, std::move(request)},
           std::move(first), options);
  }
};
struct start_close : start_base {
  template <class Handler>
  void operator()(Handler&& handler, duration drain) const {
    state->close(drain, client_state::close_handler(std::forward<Handler>(handler)));
  }
};
struct start_pending : start_base {
  template <class Handler>
  void operator()(Handler&& handler) const {
    state->pending(client_state::pending_handler(std::forward<Handler>(handler)));
  }
};

}  // namespace detail
}  // namespace redoubt
