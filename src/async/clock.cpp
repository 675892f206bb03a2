// SPDX-License-Identifier: BSL-1.0
#include <redoubt/async/clock.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace redoubt {

namespace {

// Raised whenever a source goes away, and with it the context whose address a thread may have remembered.
std::atomic<std::uint64_t> sources_gone{0};

struct remembered {
  asio::execution_context* context = nullptr;
  time_source* source = nullptr;
  std::uint64_t gone = 0;
};

}  // namespace

asio::execution_context::id time_source::id;

time_source::time_source(asio::execution_context& context) : asio::execution_context::service(context) {}

time_source::~time_source() { sources_gone.fetch_add(1, std::memory_order_relaxed); }

time_point time_source::now() const noexcept { return std::chrono::steady_clock::now(); }

std::unique_ptr<timer_backend> time_source::make_timer(asio::any_io_executor const&) { return nullptr; }

time_source& time_source::of(asio::any_io_executor const& executor) {
  // The context's list of services is behind a lock; a thread mostly asks for the same context again.
  thread_local remembered last;
  auto& context = asio::query(executor, asio::execution::context);
  auto const gone = sources_gone.load(std::memory_order_relaxed);
  if (last.context != &context || last.gone != gone) {
    last = {&context, &asio::use_service<time_source>(context), gone};
  }
  return *last.source;
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
