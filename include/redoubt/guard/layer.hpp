// SPDX-License-Identifier: BSL-1.0
//
// What a guard is when it stands in a stack (guard/stack.hpp): a layer that wraps what is inside it, with a
// rank that says where it may stand and figures by which the worst case is computed.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include <redoubt/async/cancel_point.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

namespace asio = boost::asio;

/// Where layers stand, from the operation outwards. A layer goes around another only with a higher rank, so a
/// wrong order does not compile. The numbers leave room for layers of your own.
namespace layer_rank {
inline constexpr int operation = 0;  ///< What is protected.
inline constexpr int chaos = 10;     ///< Injected faults: nearest to the operation, every guard sees them.
inline constexpr int bulkhead = 20;  ///< A slot, held until the work has really ended.
inline constexpr int token_bucket = 30;  ///< The outbound rate; waits before a slot is taken.
inline constexpr int limit = 40;         ///< The limit of one attempt: its waiting counts.
inline constexpr int breaker = 50;       ///< Open: fails before anything is waited for or taken.
inline constexpr int throttle = 55;      ///< Sheds by the share of accepted calls.
inline constexpr int hedge = 60;         ///< A second attempt beside the first.
inline constexpr int retry = 70;     ///< Further attempts; each is seen by the breaker, none keeps a slot.
inline constexpr int total = 75;     ///< The limit of all attempts and pauses together.
inline constexpr int coalesce = 80;  ///< One call per key: followers share one guarded call.
inline constexpr int fallback = 90;  ///< Around everything that may refuse.
}  // namespace layer_rank

/// One call on its way inwards. Valid while a layer's `start` runs; a layer that goes on later keeps copies
/// of the members, not the scope.
struct call_scope {
  asio::any_io_executor const& executor;  ///< Runs what needs an executor.
  time_source& clock;                     ///< That of the executor's context. To be read after having waited.
  deadline by;                            ///< By when the call must have ended.
  time_point now;  ///< The clock, read when the call began or when a layer last waited.
  /// Where the caller's wish to stop arrives; null: the caller cannot cancel. Lives until the call has
  /// completed.
  cancel_point* cancel;

  /// The same call with an earlier end.
  [[nodiscard]] call_scope until(deadline end) const {
    return {executor, clock, earlier(by, end), now, cancel};
  }
  /// The scope of a call that begins now: reads the clock.
  [[nodiscard]] static call_scope begin(asio::any_io_executor const& executor, deadline by,
                                        cancel_point* cancel) {
    auto& clock = time_source::of(executor);
    return {executor, clock, by, clock.now(), cancel};
  }
};

/// The worst that a call can come to, computed from the inside out. `duration::max()` and the largest integer
/// stand for "no bound".
struct call_figures {
  duration worst_time = duration::max();  ///< From the start to the caller's answer, without a deadline.
  std::uint64_t concurrency = ~std::uint64_t{0};  ///< Operations at once, over all callers.
  std::uint64_t sends = 1;                        ///< Operations started for one call.
  /// An operation may go on after its caller was answered: whoever bounds the calls further out does not
  /// bound the operations.
  bool outlives_answer = false;

  friend bool operator==(call_figures const&, call_figures const&) = default;
};

/// One line of a `plan()`.
struct layer_description {
  std::string kind;      ///< "bulkhead", "breaker", ...
  std::string name;      ///< The guard's own name; may be empty.
  std::string settings;  ///< The limits that matter, readable: "8 slots, 64 waiters, 1 s wait".
  call_figures figures;  ///< Of the call up to here, this layer included.

  friend bool operator==(layer_description const&, layer_description const&) = default;
};

/// A type that can stand in a stack. Copyable or movable; it usually refers to a guard that the application
/// owns.
///
///     struct my_layer {
///       static constexpr int rank = 45;
///       [[nodiscard]] layer_description describe(call_figures const& inside) const;
///       template <class T, class Next, class Done, class... Args>
///       void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const;
///     };
///
/// `start<T>` begins a call. It starts what is inside, any number of times, by
/// `next(scope, done, args...)`, and completes exactly once by `std::move(done)(result<T>)`: inside `start`
/// or later, on any thread. `done` is a movable function object; destroying it unused abandons the call (the
/// executor was stopped). Neither throws. `next` refers to the stack, which outlives its calls; `scope` and
/// `args` are valid until `start` returns.
template <class L>
concept layer = requires(L const& l, call_figures const& inside) {
  { L::rank } -> std::convertible_to<int>;
  { l.describe(inside) } -> std::same_as<layer_description>;
};

namespace detail {

/// A layer made of a rank of its own and another layer.
template <int Rank, layer L>
struct ranked_layer : L {
  static constexpr int rank = Rank;
};

}  // namespace detail

/// The explicit escape from the order: `at_rank<45>(through(second_breaker))` stands where you say, and the
/// reader sees it.
template <int Rank, layer L>
[[nodiscard]] auto at_rank(L l) {
  return detail::ranked_layer<Rank, L>{std::move(l)};
}

}  // namespace redoubt
