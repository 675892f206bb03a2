// SPDX-License-Identifier: BSL-1.0
//
// Turns a coroutine into an initiating function: written as `awaitable<T>`, callable with any completion
// token.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

namespace redoubt {

namespace asio = boost::asio;

namespace detail {

/// Drops the exception slot of a spawned coroutine: our coroutines turn failures into values, so an exception
/// is a defect (or out of memory) and leaves through the executor, as Asio does it for any handler.
template <class T, class Handler>
struct run_handler {
  Handler handler;
  void operator()(std::exception_ptr error, T value) {
    if (error) std::rethrow_exception(error);
    std::move(handler)(std::move(value));
  }
};

template <class T, class Function>
struct run_initiation {
  using executor_type = asio::any_io_executor;
  executor_type executor;
  [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

  template <class Handler>
  void operator()(Handler&& handler, Function function) const {
    asio::co_spawn(executor, std::move(function),
                   run_handler<T, std::decay_t<Handler>>{std::forward<Handler>(handler)});
  }
};

}  // namespace detail

/// Runs `function()` -> `awaitable<T>` on `executor` and completes the token with its value: `void(T)`, on
/// the token's executor, never inside this call. `T` must be default constructible. `function` is kept until
/// the coroutine ends; what it refers to must live as long. Cancellation of the token reaches the coroutine.
template <class T, class Function, class Token>
auto async_run(asio::any_io_executor executor, Function function, Token&& token) {
  return asio::async_initiate<Token, void(T)>(detail::run_initiation<T, Function>{std::move(executor)}, token,
                                              std::move(function));
}

}  // namespace redoubt

template <template <class, class> class Associator, class T, class Handler, class Default>
struct boost::asio::associator<Associator, redoubt::detail::run_handler<T, Handler>, Default>
    : Associator<Handler, Default> {
  static typename Associator<Handler, Default>::type get(redoubt::detail::run_handler<T, Handler> const& h,
                                                         Default const& fallback = Default()) noexcept {
    return Associator<Handler, Default>::get(h.handler, fallback);
  }
};
