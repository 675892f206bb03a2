// SPDX-License-Identifier: BSL-1.0
//
// The one place where time is read (time_source.hpp) and waited for (here). Both go through a service of the
// executor's context, so the same code runs in real time on an ordinary context and in virtual time on the
// context of a `testing::world`.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <redoubt/async/time_source.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// A timer that obeys the context's clock. One wait at a time. Not thread-safe.
class timer {
 public:
  explicit timer(asio::any_io_executor const& executor);

  /// The clock this timer runs under.
  [[nodiscard]] time_point now() const noexcept { return source_->now(); }

  /// Waits until `when`; completes with `operation_aborted` when cancelled. Completion: void(error_code).
  template <class Token = asio::deferred_t>
  auto async_wait_until(time_point when, Token&& token = Token{}) {
    return asio::async_initiate<Token, void(boost::system::error_code)>(initiate{this}, token, when);
  }

  /// Ends a pending wait.
  void cancel();

 private:
  struct initiate {
    using executor_type = asio::any_io_executor;
    timer* self;
    [[nodiscard]] executor_type get_executor() const noexcept { return self->real_.get_executor(); }
    template <class Handler>
    void operator()(Handler&& handler, time_point when) const {
      if (self->backend_) {
        self->backend_->wait(when, timer_backend::handler(std::forward<Handler>(handler)));
      } else {
        self->real_.expires_at(when);
        self->real_.async_wait(std::forward<Handler>(handler));
      }
    }
  };

  time_source* source_;
  asio::steady_timer real_;
  std::unique_ptr<timer_backend> backend_;
};

}  // namespace redoubt
