// SPDX-License-Identifier: BSL-1.0
//
// A bulkhead in a stack: a slot before the operation starts, given back when it has really ended.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <redoubt/async/cancel_point.hpp>
#include <redoubt/guard/bulkhead.hpp>
#include <redoubt/guard/layer.hpp>

namespace redoubt {

namespace detail {

/// Somebody who waits for a slot, and can be told to stop waiting.
class slot_wait : public cancel_listener {
 public:
  void on_cancel() noexcept override {
    {
      std::scoped_lock const lock(mutex_);
      cancelled_ = true;
      if (!begun_) return;
    }
    stop_.emit(asio::cancellation_type::terminal);
  }
  [[nodiscard]] bool withdraw() noexcept override {
    std::scoped_lock const lock(mutex_);
    if (!started_) withdrawn_ = true;
    return withdrawn_;
  }

 protected:
  [[nodiscard]] asio::cancellation_slot slot() noexcept { return stop_.slot(); }

  /// The wait has begun: from here on a request to stop reaches it.
  void begun() {
    bool late = false;
    {
      std::scoped_lock const lock(mutex_);
      begun_ = true;
      late = cancelled_;
    }
    if (late) stop_.emit(asio::cancellation_type::terminal);
  }
  /// True when what waited for the slot may start now that it has it; false when nobody wants it any more.
  [[nodiscard]] bool may_start() {
    std::scoped_lock const lock(mutex_);
    started_ = !cancelled_ && !withdrawn_;
    return started_;
  }

 private:
  std::mutex mutable mutex_;
  asio::cancellation_signal stop_;  // its slot is assigned once, before `begun_`
  bool begun_ = false;
  bool cancelled_ = false;
  bool withdrawn_ = false;
  bool started_ = false;
};

}  // namespace detail

/// See `through(bulkhead&)`.
class bulkhead_layer {
 public:
  static constexpr int rank = layer_rank::bulkhead;
  bulkhead_layer(bulkhead& guard, slot_class what) noexcept : guard_(&guard), what_(what) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    if (auto held = guard_->acquire_at_once(what_)) {
      return enter<T>(*guard_, std::move(held), next, scope, std::move(done), args...);
    }
    using wait_type = wait<T, Next, Done, std::decay_t<Args>...>;
    auto const call = std::make_shared<wait_type>(*guard_, next, scope, std::move(done), args...);
    call->begin(what_);
  }

 private:
  /// What gives the slot back: when the operation has ended, whether its caller is still there or not.
  template <class T, class Done>
  struct completion {
    bulkhead* guard;
    time_source* clock;
    time_point since;
    bulkhead::permit held;
    Done done;

    void operator()(result<T> value) {
      held.release();
      if (value.has_value() && guard->adaptive()) {
        auto const now = clock->now();
        guard->observe(now - since, now);
      }
      std::move(done)(std::move(value));
    }
  };

  template <class T, class Next, class Done, class... Args>
  static void enter(bulkhead& guard, bulkhead::permit held, Next const& next, call_scope const& scope,
                    Done done, Args const&... args) {
    next(scope, completion<T, Done>{&guard, &scope.clock, scope.now, std::move(held), std::move(done)},
         args...);
  }

  template <class T, class Next, class Done, class... Args>
  class wait final : public detail::slot_wait,
                     public std::enable_shared_from_this<wait<T, Next, Done, Args...>> {
   public:
    wait(bulkhead& guard, Next const& next, call_scope const& scope, Done done, Args const&... args)
        : guard_(&guard),
          next_(&next),
          executor_(scope.executor),
          by_(scope.by),
          cancel_(scope.cancel),
          done_(std::move(done)),
          args_(args...) {}

    void begin(slot_class what) {
      auto const self = this->shared_from_this();
      if (cancel_ != nullptr) cancel_->listen(self);
      guard_->acquire_as(what, executor_, by_,
                         asio::bind_cancellation_slot(this->slot(), [self](result<bulkhead::permit> held) {
                           self->ended(std::move(held));
                         }));
      this->begun();
    }

   private:
    void ended(result<bulkhead::permit> held) {
      if (!held) return std::move(done_)(result<T>(std::move(held).error()));
      if (!this->may_start()) {
        // The slot came together with the request to stop: nobody waits for the answer any more.
        failure f;
        f.code = errc::cancelled;
        f.effect = effect::none;
        return std::move(done_)(result<T>(f));
      }
      auto const scope = call_scope::begin(executor_, by_, cancel_);
      std::apply(
          [&](Args const&... args) {
            bulkhead_layer::enter<T>(*guard_, std::move(*held), *next_, scope, std::move(done_), args...);
          },
          args_);
    }

    bulkhead* guard_;
    Next const* next_;
    asio::any_io_executor executor_;
    deadline by_;
    cancel_point* cancel_;
    Done done_;
    std::tuple<Args...> args_;
  };

  bulkhead* guard_;
  slot_class what_;
};

/// The bulkhead as a layer of a stack: the operation starts with a slot in hand and keeps it until it has
/// really ended. The bulkhead must outlive the calls.
[[nodiscard]] inline bulkhead_layer through(bulkhead& guard, slot_class what = {}) noexcept {
  return {guard, what};
}

}  // namespace redoubt
