// SPDX-License-Identifier: BSL-1.0
//
// Bridges between the layers of a stack, which complete by calling a function object, and coroutines: a layer
// or an operation written as a coroutine, and one pass through what is inside a layer as an awaitable.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/guard/layer.hpp>

namespace redoubt::detail {

/// A call that was cancelled before anything of it was started.
[[nodiscard]] failure never_started() noexcept;

/// What an operation that threw amounts to for the guards around it: `load_failed`, or `cancelled` when it
/// was asked to stop and threw what Asio's operations throw then. Effect unknown.
[[nodiscard]] failure thrown_failure(std::exception_ptr const& thrown, bool cancelled) noexcept;

/// What `operation(by)` -> `awaitable<result<T>>` gives; nothing is thrown.
template <class T, class Operation>
asio::awaitable<result<T>> value_of(Operation& operation, deadline by) {
  std::exception_ptr thrown;
  try {
    result<T> got = co_await operation(by);
    co_return got;
  } catch (...) {
    thrown = std::current_exception();
  }
  asio::cancellation_state const state = co_await asio::this_coro::cancellation_state;
  result<T> none(thrown_failure(thrown, state.cancelled() != asio::cancellation_type::none));
  co_return none;
}

/// A coroutine that runs for a call: on a strand, where a request to stop is delivered too.
class spawned_call : public cancel_listener, public std::enable_shared_from_this<spawned_call> {
 public:
  explicit spawned_call(asio::any_io_executor const& executor) : strand_(asio::make_strand(executor)) {}

  void on_cancel() noexcept override {
    asio::post(strand_, [self = shared_from_this()] {
      self->cancelled_ = true;
      self->stop_.emit(asio::cancellation_type::terminal);
    });
  }

  /// Starts `initiate(handler)`, an Asio operation with the signature void(result<T>), on the strand. What it
  /// throws as it starts is what it ended with.
  template <class T, class Initiate, class Done>
  void initiate(Initiate start, Done done) {
    auto begin = [start = std::move(start)](auto& self, auto ended) mutable {
      auto const kept = std::make_shared<std::optional<decltype(ended)>>(std::move(ended));
      auto handler = [&self, kept](result<T> value) {
        auto end = std::exchange(*kept, std::nullopt);  // keeps `self`
        if (!end) return;
        self.stop_.slot().clear();  // what the operation left there may be gone
        (*end)(std::move(value));
      };
      try {
        start(asio::bind_cancellation_slot(self.stop_.slot(),
                                           asio::bind_executor(self.strand_, std::move(handler))));
      } catch (...) {
        auto end = std::exchange(*kept, std::nullopt);
        if (end) (*end)(result<T>(thrown_failure(std::current_exception(), self.cancelled_)));
      }
    };
    on_strand<T>(std::move(done), std::move(begin), never_started);
  }

  /// Starts the coroutine `function()` -> awaitable<result<T>>, on the strand.
  template <class T, class Function, class Done, class Early>
  void run(Function function, Done done, Early early) {
    auto begin = [function = std::move(function)](auto& self, auto ended) mutable {
      auto with_exception = [&self, ended = std::move(ended)](std::exception_ptr thrown,
                                                              result<T> value) mutable {
        ended(thrown ? result<T>(thrown_failure(thrown, self.cancelled_)) : std::move(value));
      };
      asio::co_spawn(self.strand_, std::move(function),
                     asio::bind_cancellation_slot(
                         self.stop_.slot(), asio::bind_executor(self.strand_, std::move(with_exception))));
    };
    on_strand<T>(std::move(done), std::move(begin), std::move(early));
  }

 private:
  // The slot is only ever touched on the strand. `early()` is the failure of a call that was cancelled
  // before.
  template <class T, class Done, class Begin, class Early>
  void on_strand(Done done, Begin begin, Early early) {
    auto ended = [self = shared_from_this(), done = std::move(done)](result<T> value) mutable {
      std::move(done)(std::move(value));
    };
    asio::dispatch(strand_, [self = shared_from_this(), begin = std::move(begin), ended = std::move(ended),
                             early = std::move(early)]() mutable {
      self->cancelled_ ? ended(result<T>(early())) : begin(*self, std::move(ended));
    });
  }

  asio::strand<asio::any_io_executor> strand_;
  asio::cancellation_signal stop_;
  bool cancelled_ = false;  // on the strand
};

/// Starts `function()` -> `awaitable<result<T>>` for a call and hands its value to `done`. What it throws
/// becomes a `thrown_failure`. The scope's cancellation arrives as terminal cancellation of the coroutine;
/// when it came before, `early()` is the failure, and nothing is started.
template <class T, class Function, class Done, class Early>
void spawn_call(call_scope const& scope, Function function, Done done, Early early) {
  if (scope.cancel == nullptr) {
    auto ended = [done = std::move(done)](std::exception_ptr thrown, result<T> value) mutable {
      std::move(done)(thrown ? result<T>(thrown_failure(thrown, false)) : std::move(value));
    };
    asio::co_spawn(scope.executor, std::move(function), std::move(ended));
    return;
  }
  auto call = std::make_shared<spawned_call>(scope.executor);
  scope.cancel->listen(call);
  call->template run<T>(std::move(function), std::move(done), std::move(early));
}
template <class T, class Function, class Done>
void spawn_call(call_scope const& scope, Function function, Done done) {
  spawn_call<T>(scope, std::move(function), std::move(done), never_started);
}

/// The handler of an Asio operation that a call inside a layer completes.
template <class T, class Handler>
struct posted_completion {
  posted_completion(asio::any_io_executor const& ex, Handler h)
      : executor(ex),
        handler(std::move(h)),
        work(asio::get_associated_executor(handler, ex)) {}

  void operator()(result<T> value) && {
    auto const target = work.get_executor();
    asio::post(executor, asio::bind_executor(target, asio::append(std::move(handler), std::move(value))));
  }

  asio::any_io_executor executor;
  Handler handler;
  asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>> work;
};

template <class T, class Next>
struct next_initiation {
  using executor_type = asio::any_io_executor;
  Next const* next;
  executor_type executor;
  [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, deadline by, std::tuple<Args...> const& args) const {
    std::shared_ptr<cancel_point> stop;
    if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
      stop = std::make_shared<cancel_point>();
      slot.assign([stop](asio::cancellation_type) { stop->cancel(); });
    }
    auto const scope = call_scope::begin(executor, by, stop.get());
    // Keeps the cancel_point until the call has completed.
    auto done = [stop, complete = posted_completion<T, std::decay_t<Handler>>(
                           executor, std::forward<Handler>(handler))](result<T> value) mutable {
      std::move(complete)(std::move(value));
    };
    std::apply([&](Args const&... each) { (*next)(scope, std::move(done), each...); }, args);
  }
};

/// One pass through what is inside a layer. Errors come as the value, nothing is thrown. Cancelling the
/// awaiting coroutine cancels the pass.
template <class T, class Next, class... Args>
asio::awaitable<result<T>> await_next(Next const& next, asio::any_io_executor executor, deadline by,
                                      std::tuple<Args...> args) {
  return asio::async_initiate<asio::use_awaitable_t<> const, void(result<T>)>(
      next_initiation<T, Next>{&next, std::move(executor)}, asio::use_awaitable, by, std::move(args));
}

}  // namespace redoubt::detail
