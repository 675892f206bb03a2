// SPDX-License-Identifier: BSL-1.0
//
// A pending call together with the handler that waits for it: one allocation, made with the handler's
// allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <redoubt/net/pending_call.hpp>

namespace redoubt::detail {

namespace asio = boost::asio;

/// The `io_context` whose own executor this is; null for any other, a strand for one.
[[nodiscard]] asio::io_context* host_of(asio::any_io_executor const& executor) noexcept;
template <class Allocator, std::uintptr_t Bits>
[[nodiscard]] asio::io_context* host_of(
    asio::io_context::basic_executor_type<Allocator, Bits> const& executor) noexcept {
  return &asio::query(executor, asio::execution::context);
}
template <class Executor>
[[nodiscard]] asio::io_context* host_of(Executor const&) noexcept {
  return nullptr;
}

/// `Outcome` turns the ended call into the handler's argument: `value_type take(pending_call&)`; and may have
/// it sent once more: `bool again(pending_call&)`, see `pending_call::again`.
template <class Handler, class Outcome>
class call_operation final : public pending_call {
 public:
  using allocator =
      typename std::allocator_traits<asio::associated_allocator_t<Handler, asio::recycling_allocator<void>>>::
          template rebind_alloc<call_operation>;

  static call_operation* create(Handler handler, asio::any_io_executor const& inner, Outcome outcome) {
    allocator a(asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
    auto* memory = std::allocator_traits<allocator>::allocate(a, 1);
    return new (memory) call_operation(std::move(handler), inner, std::move(outcome));
  }

  [[nodiscard]] Handler const& handler() const noexcept { return handler_; }

  void deliver() override {
    if (same_executor_) {
      // This runs in a function that was submitted to this very executor: a dispatch would be inline as well.
      complete();
    } else {
      auto argument = outcome_.take(*this);
      auto target = std::move(work_);
      // Like a dispatch: inline where that is allowed. Its initiating function would say the same in more
      // code.
      target.execute([h = release(), v = std::move(argument)]() mutable {
        clear_slot(h);
        std::move(h)(std::move(v));
      });
    }
  }

  void complete() override {
    auto argument = outcome_.take(*this);
    auto owner = release();
    clear_slot(owner);
    std::move(owner)(std::move(argument));
  }

  [[nodiscard]] asio::io_context* host() const noexcept override {
    return same_executor_ ? nullptr : host_of(work_);
  }

  void discard() noexcept override { (void)release(); }

  bool again() override { return outcome_.again(*this); }

 private:
  using executor = asio::associated_executor_t<Handler, asio::any_io_executor>;
  using work = std::decay_t<decltype(asio::prefer(std::declval<executor const&>(),
                                                  asio::execution::outstanding_work.tracked))>;

  call_operation(Handler handler, asio::any_io_executor const& inner, Outcome outcome)
      : same_executor_(completes_on(handler, inner)),
        work_(work_of(handler, inner, same_executor_)),
        handler_(std::move(handler)),
        outcome_(std::move(outcome)) {}
  ~call_operation() = default;

  static bool completes_on(Handler const& handler, asio::any_io_executor const& inner) noexcept {
    if constexpr (std::is_same_v<executor, asio::any_io_executor>) {
      auto const& own = asio::get_associated_executor(handler, inner);
      return &own == &inner || own == inner;
    } else {
      return false;
    }
  }

  /// The handler's context must not run out of work before the call has ended. The client's own does not: the
  /// connection's timer waits on it for as long as a call is under way.
  static work work_of(Handler const& handler, asio::any_io_executor const& inner, bool same) {
    if constexpr (std::is_same_v<executor, asio::any_io_executor>) {
      if (same) return work();
    }
    return asio::prefer(asio::get_associated_executor(handler, inner),
                        asio::execution::outstanding_work.tracked);
  }

  static void clear_slot(Handler& handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.clear();
  }

  /// Frees this object and gives the handler out: memory is returned before the handler runs, so that what
  /// the handler starts next can use it.
  Handler release() noexcept {
    allocator a(asio::get_associated_allocator(handler_, asio::recycling_allocator<void>()));
    Handler out(std::move(handler_));
    this->~call_operation();
    std::allocator_traits<allocator>::deallocate(a, this, 1);
    return out;
  }

  bool const same_executor_;
  work work_;  // empty when the executor is the client's own
  Handler handler_;
  Outcome outcome_;
};

}  // namespace redoubt::detail
