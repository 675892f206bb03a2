// SPDX-License-Identifier: BSL-1.0
//
// A second copy of an operation that takes long: whichever gives a value first is taken, the other is
// cancelled. For the slow tail of reads that several servers can answer; a second copy to the same slow
// server only adds load.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/async/cancel_point.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/async/safe_callable.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/extra_tokens.hpp>
#include <redoubt/fsm/retry_plan.hpp>
#include <redoubt/guard/layer.hpp>
#include <redoubt/guard/layer_coroutine.hpp>

namespace redoubt {

namespace detail {
template <class T>
struct hedge_initiation;
template <class T, class Attempt>
struct coroutine_start;
template <class T, class Start, class Done>
class hedged_call;
}  // namespace detail

/// Numbers of a `hedge`. `attempts - ended` are under way, those of callers that have their answer included.
struct hedge_snapshot {
  std::uint64_t operations = 0;  ///< Started.
  std::uint64_t attempts = 0;    ///< Made for them: first and second ones.
  std::uint64_t ended = 0;       ///< Attempts that have really ended.
  std::uint64_t second = 0;      ///< Operations that were given a second attempt.
  std::uint64_t second_won = 0;  ///< Operations whose second attempt gave the value.
  std::uint64_t no_budget = 0;   ///< Operations that took long and were given none: the ratio was used up.
};

/// Starts an operation a second time when it has not ended after `delay`. The first value wins; the other
/// attempt is cancelled, and what it still holds is let go when it really ends. Only operations that are
/// declared `idempotent`: both may be executed. It is not a retry: an operation that fails before the delay
/// fails. When both attempts fail, the failure is that of the last to end, with the sends of both, and with
/// effect `unknown` if either may have been executed.
///
/// Second attempts are at most `burst` and `ratio` of the operations, so that a slow dependency, for which
/// each operation takes longer than the delay, is not given twice the load.
///
/// Thread-safe; must outlive the attempts in flight.
class hedge {
 public:
  struct options {
    /// Appears in plans. Default "hedge".
    std::string name = "hedge";
    /// When the second attempt is made: a little more than most operations take, such as their 95th
    /// percentile. No default. Range 1 us .. 1 h.
    required<duration> delay;
    /// Second attempts that an operation earns. Default 0.05: one for twenty. Range 0 .. 1.
    double ratio = 0.05;
    /// Second attempts that can be saved up; it starts full. Default 10. Range 2 .. 10000.
    std::uint32_t burst = 10;

    /// Throws `option_error` naming the field that is out of range.
    void validate() const;
  };

  /// Throws `option_error` when an option is out of range.
  explicit hedge(options o);
  hedge(hedge const&) = delete;
  hedge& operator=(hedge const&) = delete;

  /// Calls `attempt(by)` -> `awaitable<result<T>>` once or twice, at the same time, on strands of `executor`.
  /// Completion: `void(result<T>)`, on the token's executor, exactly once, never inside this call.
  /// Cancelling the token cancels both attempts. An attempt that throws counts as `load_failed`. `attempt`
  /// and what it refers to must live until both attempts have ended, which may be after the completion.
  template <class T, safe_callable Attempt, class Token = asio::deferred_t>
  auto run(asio::any_io_executor executor, deadline by, idempotent_t, Attempt&& attempt,
           Token&& token = Token{}) {
    using start = detail::coroutine_start<T, std::decay_t<Attempt>>;
    return asio::async_initiate<Token, void(result<T>)>(
        detail::hedge_initiation<T>{this, std::move(executor)}, token, by,
        start{std::forward<Attempt>(attempt)});
  }

  /// Numbers so far.
  [[nodiscard]] hedge_snapshot snapshot() const noexcept;
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return options_.name; }
  /// When a second attempt is made.
  [[nodiscard]] duration delay() const noexcept { return options_.delay; }
  /// Second attempts that an operation earns.
  [[nodiscard]] double ratio() const noexcept { return options_.ratio; }

 private:
  template <class T, class Start, class Done>
  friend class detail::hedged_call;

  /// True when a second attempt may be made now; counted either way.
  [[nodiscard]] bool try_second(time_point now) noexcept;

  options options_;
  detail::counter operations_, attempts_, ended_, second_, second_won_, no_budget_;
  std::mutex mutex_;
  extra_tokens tokens_;  // under the mutex
};

namespace detail {

/// One hedged operation. Everything happens on `strand_`, so the attempts, the timer and the caller's
/// cancellation never meet. Kept alive by whichever of them is pending.
template <class T, class Start, class Done>
class hedged_call : public cancel_listener, public std::enable_shared_from_this<hedged_call<T, Start, Done>> {
 public:
  hedged_call(hedge& owner, call_scope const& scope, Start start, Done done)
      : owner_(owner),
        executor_(scope.executor),
        strand_(asio::make_strand(executor_)),
        source_(scope.clock),
        clock_(strand_),
        by_(scope.by),
        began_(scope.now),
        start_(std::move(start)),
        done_(std::move(done)) {}

  static void begin(hedge& owner, call_scope const& scope, Start start, Done done) {
    owner.operations_.add();
    auto call = std::make_shared<hedged_call>(owner, scope, std::move(start), std::move(done));
    if (scope.cancel != nullptr) scope.cancel->listen(call);
    asio::dispatch(call->strand_, [call] {
      call->attempt(0);
      call->arm();
    });
  }

  void on_cancel() noexcept override {
    asio::post(strand_, [self = this->shared_from_this()] {
      self->cancelled_ = true;
      for (auto& each : self->stop_) each.cancel();
    });
  }

 private:
  void attempt(std::size_t which) {
    ++running_;
    owner_.attempts_.add();
    call_scope const scope{executor_, source_, by_, which == 0 ? began_ : clock_.now(), &stop_[which]};
    start_(scope, [self = this->shared_from_this(), which](result<T> got) {
      asio::dispatch(self->strand_,
                     [self, which, got = std::move(got)]() mutable { self->on_end(which, std::move(got)); });
    });
  }

  void arm() {
    // A second attempt that could only begin at the end is not worth a timer.
    if (!done_ || by_.left(began_) <= owner_.delay()) return;
    clock_.async_wait_until(
        saturating_add(began_, owner_.delay()),
        asio::bind_executor(strand_, [self = this->shared_from_this()](boost::system::error_code stopped) {
          if (!stopped) self->on_delay();
        }));
  }

  void on_delay() {
    if (!done_ || cancelled_ || !owner_.try_second(clock_.now())) return;
    attempt(1);
  }

  void on_end(std::size_t which, result<T> got) {
    --running_;
    owner_.ended_.add();
    if (!done_) return;  // the other one was faster
    if (got) {
      if (which == 1) owner_.second_won_.add();
      return finish(std::move(got));
    }
    sends_ += got.error().attempts;
    maybe_executed_ = maybe_executed_ || got.error().effect == effect::unknown;
    if (running_ > 0) return;
    failure last = got.error();
    last.attempts = static_cast<std::uint8_t>(std::min<std::uint32_t>(sends_, 255));
    if (maybe_executed_) last.effect = effect::unknown;
    last.elapsed = clock_.now() - began_;
    finish(std::move(last));
  }

  void finish(result<T> got) {
    clock_.cancel();
    Done done = std::move(*done_);
    done_.reset();                           // first: what is cancelled may end at once
    for (auto& each : stop_) each.cancel();  // nobody listens any more where an attempt has ended
    std::move(done)(std::move(got));
  }

  hedge& owner_;
  asio::any_io_executor executor_;
  asio::strand<asio::any_io_executor> strand_;
  time_source& source_;
  timer clock_;
  deadline by_;
  time_point began_;
  Start start_;
  std::optional<Done> done_;
  std::array<cancel_point, 2> stop_;
  std::uint32_t running_ = 0;
  std::uint32_t sends_ = 0;
  bool maybe_executed_ = false;
  bool cancelled_ = false;
};

/// Starts attempts that are coroutines. Lives in the `hedged_call`, and that until they have ended.
template <class T, class Attempt>
struct coroutine_start {
  Attempt attempt;
  template <class Done>
  void operator()(call_scope const& scope, Done done) {
    spawn_call<T>(
        scope, [this, by = scope.by] { return attempt(by); }, std::move(done));
  }
};

/// Starts attempts that are passes through what is inside a layer.
template <class Next, class... Args>
struct inner_start {
  Next const* next;
  std::tuple<Args...> args;
  template <class Done>
  void operator()(call_scope const& scope, Done done) {
    std::apply([&](Args const&... each) { (*next)(scope, std::move(done), each...); }, args);
  }
};

template <class T>
struct hedge_initiation {
  using executor_type = asio::any_io_executor;
  hedge* owner;
  executor_type executor;
  [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

  template <class Handler, class Start>
  void operator()(Handler&& handler, deadline by, Start start) const {
    auto stop = std::make_shared<cancel_point>();
    if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
      slot.assign([stop](asio::cancellation_type) { stop->cancel(); });
    }
    auto const scope = call_scope::begin(executor, by, stop.get());
    auto done = [stop, complete = posted_completion<T, std::decay_t<Handler>>(
                           executor, std::forward<Handler>(handler))](result<T> value) mutable {
      std::move(complete)(std::move(value));
    };
    hedged_call<T, Start, decltype(done)>::begin(*owner, scope, std::move(start), std::move(done));
  }
};

/// A `hedge` in a stack.
class hedge_layer {
 public:
  static constexpr int rank = layer_rank::hedge;

  explicit hedge_layer(hedge& owner) noexcept : owner_(&owner) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const;

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    using start_type = inner_start<Next, std::decay_t<Args>...>;
    hedged_call<T, start_type, Done>::begin(*owner_, scope, start_type{&next, {args...}}, std::move(done));
  }

 private:
  hedge* owner_;
};

}  // namespace detail

/// A `hedge` as a layer. What is inside it must be declared idempotent: both attempts may be executed. The
/// hedge must outlive the stack.
[[nodiscard]] inline auto through(hedge& owner, idempotent_t) { return detail::hedge_layer(owner); }

}  // namespace redoubt
