// SPDX-License-Identifier: BSL-1.0
#include <redoubt/async/clock.hpp>

#include <chrono>

namespace redoubt {

asio::execution_context::id time_source::id;

time_source::time_source(asio::execution_context& context) : asio::execution_context::service(context) {}

time_point time_source::now() const noexcept { return std::chrono::steady_clock::now(); }

std::unique_ptr<timer_backend> time_source::make_timer(asio::any_io_executor const&) { return nullptr; }

time_source& time_source::of(asio::any_io_executor const& executor) {
  auto& context = asio::query(executor, asio::execution::context);
  return asio::use_service<time_source>(context);
}

void time_source::shutdown() {}

timer::timer(asio::any_io_executor const& executor)
    : source_(&time_source::of(executor)),
      real_(executor),
      backend_(source_->make_timer(executor)) {}

void timer::cancel() {
  if (backend_) {
    backend_->cancel();
  } else {
    real_.cancel();
  }
}

}  // namespace redoubt
