// SPDX-License-Identifier: BSL-1.0
//
// Where time comes from. Apart from the timer in clock.hpp, which includes Asio's: of all its headers they
// cost a compiler the most, and whoever makes calls needs none of them.
#pragma once

#include <memory>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <redoubt/core/time.hpp>

namespace redoubt {

namespace asio = boost::asio;

/// A one-shot wait under somebody else's clock. Implemented by `testing::world`.
class timer_backend {
 public:
  using handler = asio::any_completion_handler<void(boost::system::error_code)>;
  virtual ~timer_backend() = default;
  /// Calls `done` on its executor at `when`, or earlier with `operation_aborted` after `cancel()`.
  virtual void wait(time_point when, handler done) = 0;
  virtual void cancel() = 0;
};

/// Where time comes from: a service of an execution context. The base class is the real steady clock; a
/// `testing::world` installs its own in its context. Thread-safe.
class time_source : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;

  explicit time_source(asio::execution_context& context);
  ~time_source() override;

  /// The time now.
  [[nodiscard]] virtual time_point now() const noexcept;

  /// A wait under this clock; null means that an ordinary steady timer does.
  [[nodiscard]] virtual std::unique_ptr<timer_backend> make_timer(asio::any_io_executor const& executor);

  /// The source that belongs to an executor's context.
  [[nodiscard]] static time_source& of(asio::any_io_executor const& executor);

 protected:
  void shutdown() override;
};

/// The time now as the executor's context sees it.
[[nodiscard]] inline time_point now(asio::any_io_executor const& executor) {
  return time_source::of(executor).now();
}

/// A deadline that lies `budget` ahead. Use it once, where a request begins, and hand the deadline down.
[[nodiscard]] inline deadline deadline_after(asio::any_io_executor const& executor, duration budget) {
  return deadline(saturating_add(now(executor), budget));
}

}  // namespace redoubt
