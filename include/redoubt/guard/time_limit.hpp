// SPDX-License-Identifier: BSL-1.0
//
// A limit that holds for the caller: at the end of it the caller has an answer, even if the operation does
// not listen to cancellation. An operation that goes on without its caller stays counted until it really
// ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/bind_executor.hpp>

#include <redoubt/async/cancel_point.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/core/block_cache.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/guard/layer.hpp>

namespace redoubt {

/// Numbers of a `time_limit`. When nothing is under way: `calls == in_time + own + callers + saturated +
/// cancelled`.
struct time_limit_snapshot {
  std::uint64_t in_time = 0;    ///< Ended by themselves, with a value or a failure of their own.
  std::uint64_t own = 0;        ///< Ended by this limit: `limit_exceeded`.
  std::uint64_t callers = 0;    ///< Ended by the caller's deadline: `deadline_exceeded`.
  std::uint64_t saturated = 0;  ///< Ended by either while still waiting in a queue of ours.
  std::uint64_t cancelled = 0;  ///< Ended by the caller's cancellation.
  std::uint64_t orphans = 0;    ///< Operations that still run although their caller has been answered.
};

/// The earlier of an own limit and the caller's deadline. Thread-safe; may be destroyed before its calls end.
///
/// In a stack: `limit(500ms)` around one attempt, `total(2s)` around all of them, or `through(object)` to
/// read its numbers.
///
/// Failures: `limit_exceeded` when its own limit was the earlier one, `deadline_exceeded` when the caller's
/// deadline was; `detail->note` has its name. Effect `unknown`, unless the call was still waiting in a queue
/// of ours: then nothing was started, the effect is `none`, and the class is `saturated`, so no breaker
/// counts it.
class time_limit {
  struct core;

 public:
  struct options {
    /// Appears in failures. Default "limit".
    std::string name = "limit";
    /// From the start of the call to the caller's answer. Default 1 s. Range 1 us .. 1 h.
    duration limit = std::chrono::seconds(1);

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  /// Throws `option_error` when an option is out of range.
  explicit time_limit(options o);

  /// Numbers at this moment.
  [[nodiscard]] time_limit_snapshot snapshot() const noexcept;
  /// The limit.
  [[nodiscard]] duration limit() const noexcept;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept;

 private:
  template <int Rank>
  friend class time_limit_layer;
  template <class T, class Done>
  friend class limited_call;

  /// Why a call ended without its operation.
  enum class end : std::uint8_t { expired, cancelled };
  [[nodiscard]] static failure ended(core& c, end why, bool own, bool waiting, duration elapsed) noexcept;
  [[nodiscard]] static failure too_late(core& c) noexcept;

  struct core {
    explicit core(options o);
    std::string name;
    duration limit;
    std::shared_ptr<failure_detail const> detail;
    detail::counter in_time, own, callers, saturated, cancelled;
    std::atomic<std::uint64_t> orphans{0};
  };
  std::shared_ptr<core> core_;
};

/// One call under a limit: kept by the operation, until it really ends, by whoever starts it, and by the
/// timer. It counts its keepers itself: while it is being started there are the first two of them and no
/// others, so an operation that ends inside its own start, on the same thread, needs no atomic operation.
template <class T, class Done>
class limited_call final : public cancel_listener {
 public:
  limited_call(std::shared_ptr<time_limit::core> const& c, Done done, call_scope const& scope)
      : core_(&c),
        done_(std::move(done)),
        start_(scope.now),
        own_(saturating_add(scope.now, c->limit) < scope.by.at()),
        clock_(&scope.clock) {}

  struct dropper {
    void operator()(limited_call* call) const noexcept { call->drop(); }
  };
  using keeper = std::unique_ptr<limited_call, dropper>;
  struct starter_gone {
    void operator()(limited_call* call) const noexcept {
      call->started();
      call->drop();
    }
  };
  /// Of who starts the call.
  using starter = std::unique_ptr<limited_call, starter_gone>;

  /// A new call. Has to be given one `completion`.
  [[nodiscard]] static starter make(std::shared_ptr<time_limit::core> const& c, Done done,
                                    call_scope const& scope) {
    using memory = detail::block_cache<sizeof(limited_call), alignof(limited_call)>;
    return starter(::new (memory::take()) limited_call(c, std::move(done), scope));
  }

  /// What the operation completes: the caller, or nobody any more.
  class completion {
   public:
    explicit completion(limited_call& call) noexcept : call_(&call) {}
    completion(completion&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
    completion& operator=(completion&&) = delete;
    ~completion() {
      if (call_ == nullptr) return;
      call_->release();
      call_->let_go();
    }
    void operator()(result<T> value) {
      auto* const call = std::exchange(call_, nullptr);
      call->finish(std::move(value));
      call->let_go();
    }

   private:
    limited_call* call_;
  };

  [[nodiscard]] cancel_point& stop() noexcept { return stop_; }

  /// After the operation has been started: if it has not ended already, waits for what comes first.
  void watch(call_scope const& scope, deadline end) {
    started();
    if (ended_.load()) return;
    // Either this is seen by who ends the call, or its end is seen here: then the scope may be gone.
    watched_.store(true);
    bool cancelled = false;
    {
      std::scoped_lock const lock(mutex_);
      if (ended_.load()) return;
      listener_ = std::shared_ptr<limited_call>(keep());
      if (scope.cancel != nullptr) cancelled = scope.cancel->add(listener_);
      timer_.emplace(scope.executor);
      timer_->async_wait_until(end.at(), [self = listener_](boost::system::error_code ec) {
        if (!ec) static_cast<limited_call&>(*self).give_up(time_limit::end::expired);
      });
    }
    if (cancelled) on_cancel();
  }

  void on_cancel() noexcept override { give_up(time_limit::end::cancelled); }
  [[nodiscard]] bool withdraw() noexcept override { return stop_.withdraw(); }

 private:
  [[nodiscard]] keeper keep() noexcept {
    keepers_.fetch_add(1, std::memory_order_relaxed);
    return keeper(this);
  }
  void drop() noexcept {
    using memory = detail::block_cache<sizeof(limited_call), alignof(limited_call)>;
    // The only one cannot become one of several.
    bool const only = keepers_.load(std::memory_order_acquire) == 1;
    if (!only && keepers_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    this->~limited_call();
    memory::give_back(this);
  }

  /// True inside the start of the operation and on its thread: nobody else can end the call or keep it.
  [[nodiscard]] bool starting() const noexcept {
    return starter_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  void started() noexcept { starter_.store(std::thread::id(), std::memory_order_relaxed); }
  // The completion is gone.
  void let_go() noexcept { starting() ? keepers_.store(1, std::memory_order_relaxed) : drop(); }

  // Nothing ends it any more but the operation. Under the mutex; what is returned is to be dropped outside.
  [[nodiscard]] std::shared_ptr<cancel_listener> unwatch() {
    if (timer_) timer_->cancel();
    return std::move(listener_);
  }

  /// True for the one who may answer the caller.
  bool first() {
    if (starting()) {
      ended_.store(true, std::memory_order_relaxed);
      return true;
    }
    if (ended_.exchange(true)) return false;
    if (!watched_.load()) return true;
    std::shared_ptr<cancel_listener> listener;  // outlives the lock
    std::scoped_lock const lock(mutex_);
    listener = unwatch();
    return true;
  }

  void finish(result<T> value) {
    if (!first()) return release();
    (*core_)->in_time.add();
    std::move(done_)(std::move(value));
  }

  // The operation is gone: without an answer, because its executor was stopped, or after the caller has gone.
  void release() noexcept {
    std::shared_ptr<time_limit::core> orphan;
    std::shared_ptr<cancel_listener> listener;
    {
      std::scoped_lock const lock(mutex_);
      ended_.store(true);
      over_ = true;
      orphan = std::move(orphan_);
      listener = unwatch();
    }
    if (orphan) orphan->orphans.fetch_sub(1, std::memory_order_relaxed);
  }

  void give_up(time_limit::end why) noexcept {
    auto const until_the_end = keep();
    if (!first()) return;
    // Taken back, not only looked at: what says that nothing was started must not be started a moment later.
    bool const in_queue = stop_.withdraw();
    {
      std::scoped_lock const lock(mutex_);
      if (!over_) {
        orphan_ = *core_;
        orphan_->orphans.fetch_add(1, std::memory_order_relaxed);
      }
    }
    // The caller first: what the operation does with the request to stop is not its concern any more.
    std::move(done_)(result<T>(time_limit::ended(**core_, why, own_, in_queue, clock_->now() - start_)));
    stop_.cancel();
  }

  std::shared_ptr<time_limit::core> const*
      core_;  // of the layer, which lives until the caller has its answer
  Done done_;
  time_point start_;
  bool own_;
  time_source* clock_;
  cancel_point stop_;
  std::atomic<std::uint32_t> keepers_{2};  // the starter and the completion
  std::atomic<std::thread::id> starter_{std::this_thread::get_id()};
  std::atomic<bool> ended_{false};    // the caller has its answer
  std::atomic<bool> watched_{false};  // it did not end at once
  std::mutex mutex_;
  std::optional<timer> timer_;                 // under the mutex
  std::shared_ptr<cancel_listener> listener_;  // itself, while something can end it; under the mutex
  std::shared_ptr<time_limit::core>
      orphan_;         // set while the operation runs without its caller; under the mutex
  bool over_ = false;  // the operation has ended; under the mutex
};

/// A time limit in a stack.
template <int Rank>
class time_limit_layer {
 public:
  static constexpr int rank = Rank;
  explicit time_limit_layer(time_limit const& guard) : core_(guard.core_) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    if (scope.by.passed(scope.now)) return std::move(done)(result<T>(time_limit::too_late(*core_)));
    using call_type = limited_call<T, Done>;
    auto const call = call_type::make(core_, std::move(done), scope);
    auto const end = earlier(scope.by, deadline(saturating_add(scope.now, core_->limit)));
    next(call_scope{scope.executor, scope.clock, end, scope.now, &call->stop()},
         typename call_type::completion(*call), args...);
    call->watch(scope, end);
  }

 private:
  std::shared_ptr<time_limit::core> core_;
};

extern template class time_limit_layer<layer_rank::limit>;
extern template class time_limit_layer<layer_rank::total>;

/// The limit of one attempt: queue wait and work together.
[[nodiscard]] time_limit_layer<layer_rank::limit> limit(duration longest);
/// The limit of all attempts and pauses together; stands outside a retry.
[[nodiscard]] time_limit_layer<layer_rank::total> total(duration longest);
/// A limit whose numbers you want to read.
[[nodiscard]] inline time_limit_layer<layer_rank::limit> through(time_limit const& guard) {
  return time_limit_layer<layer_rank::limit>(guard);
}

}  // namespace redoubt
