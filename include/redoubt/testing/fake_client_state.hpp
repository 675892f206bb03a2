// SPDX-License-Identifier: BSL-1.0
//
// What stands behind `fake_client`: calls on their way to the fake server, and the initiations of its
// operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/net/call_operation.hpp>
#include <redoubt/net/client_state.hpp>
#include <redoubt/net/pending_call.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reader.hpp>
#include <redoubt/resp/script.hpp>
#include <redoubt/testing/fake_server.hpp>

namespace redoubt::testing {

/// Options of a `fake_client`; the times mean what they mean in `client_options`.
struct fake_client_options {
  /// Put before the keys by the policies, by `async_eval` and by `key()`. Default: empty.
  std::string key_prefix{};
  /// The longest that a call without a budget takes. Default 150 ms.
  duration call_timeout = std::chrono::milliseconds(150);
  /// The longest that one attempt of a call without a budget takes. Default 100 ms.
  duration attempt_timeout = std::chrono::milliseconds(100);
  /// How the server starts.
  fake_server_options server{};
};

namespace detail {

namespace asio = boost::asio;
using redoubt::detail::pending_call;

/// A script call before it is encoded.
struct fake_eval_request {
  script body;
  keys k;
  args a;
};

/// See the head of this file. Everything happens on the executor; not thread-safe. Internal tier: may change
/// in any version.
class fake_client_state : public std::enable_shared_from_this<fake_client_state> {
 public:
  fake_client_state(asio::any_io_executor executor, fake_client_options options);
  ~fake_client_state();

  /// Lets the server wake the client; once, after construction.
  void connect_wake();

  [[nodiscard]] asio::any_io_executor const& executor() const noexcept { return executor_; }
  [[nodiscard]] fake_client_options const& options() const noexcept { return options_; }
  [[nodiscard]] fake_server& server() noexcept { return server_; }
  [[nodiscard]] std::vector<std::vector<std::string>> const& calls() const noexcept { return calls_; }
  void clear_calls() { calls_.clear(); }

  void fail_next(failure why) { scripted_.push_back(std::move(why)); }
  void fail_all(failure why) { broken_ = std::move(why); }
  void lose_next_reply() noexcept { lose_next_ = true; }
  void heal();

  /// Takes the call over.
  void start(pending_call* call, call_options const& options);
  /// A number by which the call can be cancelled.
  std::uint64_t make_key(pending_call* call) noexcept { return call->cancel_key = ++last_key_; }
  void cancel(std::uint64_t key);
  /// Ends everything with `closed`.
  void shut();

 private:
  struct waiting_call {
    pending_call* call;
    time_point attempt_by;
  };
  struct sent_call {
    pending_call* call;  // null when its caller has gone
    std::size_t replies_left;
    time_point sent_at;
    time_point attempt_by;
    bool reply_is_lost;
  };
  struct arrival {
    time_point at;
    fake_server::output what;
  };

  void schedule();
  void deliver_ended();
  void turn();
  void take_arrivals(time_point now);
  void read(std::string_view bytes, time_point now);
  void lose_connection(errc code, time_point now);
  void expire(time_point now);
  [[nodiscard]] bool connected(time_point now);
  void send_waiting(time_point now);
  void arm(time_point now);
  void note(pending_call const& call);
  void end(pending_call* call, failure why, time_point now);
  void answered(sent_call& entry, time_point now);
  [[nodiscard]] time_point limit_of(pending_call const& call, time_point attempt_by) const noexcept;
  [[nodiscard]] bool gate_closed(time_point now) const noexcept;

  asio::any_io_executor executor_;
  fake_client_options options_;
  fake_server server_;
  timer timer_;
  std::optional<time_point> armed_;
  std::uint64_t armed_number_ = 0;
  bool scheduled_ = false;
  bool in_turn_ = false;
  bool shut_ = false;

  std::optional<fake_server::session> session_;
  bool ready_ = false;  // false while a handshake would still wait for a frozen server
  std::optional<reader> reader_;
  std::deque<arrival> arrivals_;
  time_point last_bytes_ = time_point::min();

  std::deque<waiting_call> waiting_;
  std::deque<sent_call> sent_;
  redoubt::detail::call_list ended_;

  std::deque<failure> scripted_;
  std::optional<failure> broken_;
  bool lose_next_ = false;
  std::uint64_t last_key_ = 0;
  std::vector<std::vector<std::string>> calls_;
};

/// Keeps what EVAL needs until the server has decided about EVALSHA.
struct fake_eval_outcome {
  std::shared_ptr<fake_client_state> state;
  fake_eval_request request;
  bool sent_body = false;
  bool again(pending_call& call);
  static result<reply> take(pending_call& call) { return redoubt::detail::single_result(call); }
};

/// Ends the call with this number on the client's executor; from any thread.
void cancel_fake_call(std::weak_ptr<fake_client_state> const& where, asio::any_io_executor const& executor,
                      std::uint64_t key);

/// Common to all initiations.
struct start_fake_base {
  using executor_type = asio::any_io_executor;
  std::shared_ptr<fake_client_state> state;
  [[nodiscard]] executor_type get_executor() const noexcept { return state->executor(); }

  template <class Handler, class Outcome, class What>
  void launch(Handler&& handler, Outcome outcome, What&& what, call_options const& options) const {
    using operation = redoubt::detail::call_operation<std::decay_t<Handler>, Outcome>;
    auto* call = operation::create(std::forward<Handler>(handler), state->executor(), std::move(outcome));
    redoubt::detail::prepare(*call, std::forward<What>(what));
    auto slot = asio::get_associated_cancellation_slot(call->handler());
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(state), executor = state->executor(),
                   key = state->make_key(call)](asio::cancellation_type type) {
        if (type != asio::cancellation_type::none) cancel_fake_call(weak, executor, key);
      });
    }
    state->start(call, options);
  }
};

struct start_fake_call : start_fake_base {
  template <class Handler>
  void operator()(Handler&& handler, command cmd, call_options options) const {
    launch(std::forward<Handler>(handler), redoubt::detail::single_outcome{}, std::move(cmd), options);
  }
};
struct start_fake_pipeline : start_fake_base {
  template <class Handler>
  void operator()(Handler&& handler, pipeline batch, call_options options) const {
    launch(std::forward<Handler>(handler), redoubt::detail::pipeline_outcome{}, std::move(batch), options);
  }
};
struct start_fake_transaction : start_fake_base {
  template <class Handler>
  void operator()(Handler&& handler, transaction block, call_options options) const {
    launch(std::forward<Handler>(handler), redoubt::detail::transaction_outcome{}, std::move(block), options);
  }
};
struct start_fake_eval : start_fake_base {
  template <class Handler>
  void operator()(Handler&& handler, fake_eval_request request, call_options options) const {
    auto first = eval_command(request.body, request.k, request.a, state->options().key_prefix, true);
    launch(std::forward<Handler>(handler), fake_eval_outcome{state, std::move(request)}, std::move(first),
           options);
  }
};

}  // namespace detail
}  // namespace redoubt::testing
