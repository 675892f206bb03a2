// SPDX-License-Identifier: BSL-1.0
//
// Runs the application's own coroutine with a limit that holds even if that coroutine ignores cancellation:
// at the deadline the caller is told, and the coroutine goes on in the background until it really ends.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/async/clock.hpp>

namespace redoubt {

/// How a limited run ended for its caller.
enum class run_end : std::uint8_t {
  finished,   ///< With a value.
  threw,      ///< With an exception.
  expired,    ///< The deadline passed first; the coroutine may still be running.
  cancelled,  ///< The caller cancelled; the coroutine may still be running.
};

/// What `run_by` completes with.
template <class T>
struct run_result {
  run_end end = run_end::expired;
  std::optional<T> value{};    ///< Set when `finished`.
  std::exception_ptr error{};  ///< Set when `threw`.
};

namespace detail {

/// One limited run. Everything happens on `strand`, so the coroutine, the timer and the caller's cancellation
/// never meet. Kept alive by whichever of them is pending.
template <class T, class Handler>
class limited_run : public std::enable_shared_from_this<limited_run<T, Handler>> {
 public:
  limited_run(asio::any_io_executor const& executor, Handler handler)
      : executor_(executor),
        strand_(asio::make_strand(executor)),
        clock_(strand_),
        handler_(std::move(handler)),
        work_(asio::get_associated_executor(handler_, executor)) {}

  template <class Function>
  void start(deadline by, Function function) {
    auto self = this->shared_from_this();
    if (auto slot = asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(self)](asio::cancellation_type) {
        if (auto run = weak.lock()) asio::post(run->strand_, [run] { run->stop(run_end::cancelled); });
      });
    }
    asio::post(strand_, [self, by, function = std::move(function)]() mutable {
      if (!self->ended_) self->begin(by, std::move(function));
    });
  }

 private:
  template <class Function>
  void begin(deadline by, Function function) {
    if (by.passed(clock_.now())) return stop(run_end::expired);
    auto self = this->shared_from_this();
    if (by.is_set()) {
      clock_.async_wait_until(by.at(), asio::bind_executor(strand_, [self](boost::system::error_code ec) {
                                if (!ec) self->stop(run_end::expired);
                              }));
    }
    asio::co_spawn(
        strand_, std::move(function),
        asio::bind_cancellation_slot(cancel_.slot(),
                                     asio::bind_executor(strand_, [self](std::exception_ptr error, T value) {
                                       run_result<T> result;
                                       result.end = error ? run_end::threw : run_end::finished;
                                       result.error = error;
                                       if (!error) result.value.emplace(std::move(value));
                                       self->complete(std::move(result));
                                     })));
  }

  // The caller is told first: what the coroutine does when it is cancelled is not the caller's concern any
  // more.
  void stop(run_end end) {
    run_result<T> result;
    result.end = end;
    complete(std::move(result));
    cancel_.emit(asio::cancellation_type::terminal);
  }

  void complete(run_result<T> result) {
    if (std::exchange(ended_, true)) return;
    clock_.cancel();
    // Not on the strand: a caller that takes its time must not hold up the coroutine that still runs.
    asio::post(executor_, asio::append(std::move(handler_), std::move(result)));
    work_.reset();
  }

  asio::any_io_executor executor_;
  asio::strand<asio::any_io_executor> strand_;
  timer clock_;
  Handler handler_;
  asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>> work_;
  asio::cancellation_signal cancel_;
  bool ended_ = false;
};

template <class T, class Function>
struct run_by_initiation {
  using executor_type = asio::any_io_executor;
  executor_type executor;
  [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

  template <class Handler>
  void operator()(Handler&& handler, deadline by, Function function) const {
    using run_type = limited_run<T, std::decay_t<Handler>>;
    std::make_shared<run_type>(executor, std::forward<Handler>(handler))->start(by, std::move(function));
  }
};

}  // namespace detail

/// Runs `function()` -> `awaitable<T>` on a strand of `executor` and completes with `run_result<T>`: its
/// value, its exception, or `expired` at the deadline. Completion: `void(run_result<T>)`, on the token's
/// executor, exactly once, never inside this call, and not later than `by`. Cancelling the token completes
/// with `cancelled` at once.
///
/// When the run expires or is cancelled, terminal cancellation is emitted to the coroutine, which may ignore
/// it. `function` and everything it holds (a bulkhead's permit moved into it, for instance) live until it
/// really ends; what it refers to must live as long. It is not started when the deadline has passed already.
/// `T` must be default constructible and movable. Time is that of the executor's context.
template <class T, class Function, class Token = asio::deferred_t>
auto run_by(asio::any_io_executor executor, deadline by, Function function, Token&& token = Token{}) {
  return asio::async_initiate<Token, void(run_result<T>)>(
      detail::run_by_initiation<T, Function>{std::move(executor)}, token, by, std::move(function));
}

}  // namespace redoubt
