// SPDX-License-Identifier: BSL-1.0
//
// How a coroutine calls a function that blocks: on a thread of its own, never on the event loop.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace shop {

namespace asio = boost::asio;

/// Calls `function` on a thread of `pool` and continues where the caller runs, with its result or its
/// exception. A blocking function cannot be cancelled, so neither can this: a caller in a hurry gives up
/// waiting, and the function goes on to its end. The pool must end before the caller's context does.
template <class Function, class T = std::invoke_result_t<Function&>>
asio::awaitable<T> run_blocking(asio::thread_pool& pool, Function function) {
  auto start = [&pool, function = std::move(function)](auto handler) mutable {
    auto const caller = asio::get_associated_executor(handler);
    asio::post(pool, [function = std::move(function), handler = std::move(handler),
                      alive = asio::make_work_guard(caller)]() mutable {
      std::exception_ptr error;
      T value{};
      try {
        value = function();
      } catch (...) {
        error = std::current_exception();
      }
      auto resume = [handler = std::move(handler), error, value = std::move(value)]() mutable {
        std::move(handler)(error, std::move(value));
      };
      asio::post(alive.get_executor(), std::move(resume));
    });
  };
  using signature = void(std::exception_ptr, T);
  T value = co_await asio::async_initiate<asio::use_awaitable_t<> const, signature>(std::move(start),
                                                                                    asio::use_awaitable);
  co_return value;
}

}  // namespace shop
