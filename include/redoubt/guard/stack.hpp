// SPDX-License-Identifier: BSL-1.0
//
// Guards composed around an operation, read from the inside out:
//
//     auto guarded = start(load) | through(slots) | limit(500ms) | through(database) | one_per_key(flights);
//     result<price> p = co_await guarded(executor, by, sku);
//
// The order is checked by the compiler: each layer stands outside the ones before it (`layer_rank`).
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/guard/layer.hpp>
#include <redoubt/guard/layer_coroutine.hpp>
#include <redoubt/guard/plan.hpp>

namespace redoubt {

/// A layer that may go around a stack whose outermost layer has the rank `Rank`: layers rise outwards. Where
/// another order is meant, `at_rank<N>(layer)` says so.
template <class L, int Rank>
concept goes_outside = layer<L> && (L::rank > Rank);

namespace detail {

template <class T>
struct awaited_result {
  static_assert(sizeof(T) == 0,
                "start(op): op(args..., deadline) must return asio::awaitable<redoubt::result<T>>");
};
template <class T>
struct awaited_result<asio::awaitable<result<T>>> {
  using type = T;
};

/// op(args..., deadline) -> awaitable<result<T>>.
template <class Op>
class coroutine_operation {
 public:
  explicit coroutine_operation(Op op) : op_(std::move(op)) {}

  template <class... Args>
  using value = typename awaited_result<std::invoke_result_t<Op const&, Args const&..., deadline>>::type;

  template <class Done, class... Args>
  void operator()(call_scope const& scope, Done done, Args const&... args) const {
    // The arguments live in the function, and that until the coroutine has ended.
    auto function = [op = &op_, by = scope.by, kept = std::tuple<std::decay_t<Args>...>(args...)] {
      return std::apply([&](auto const&... each) { return (*op)(each..., by); }, kept);
    };
    spawn_call<value<Args...>>(scope, std::move(function), std::move(done));
  }

  void describe(std::vector<layer_description>&) const {}

 private:
  Op op_;
};

/// op(args..., deadline, handler): an Asio operation with the signature void(result<T>).
template <class T, class Op>
class asio_operation {
 public:
  explicit asio_operation(Op op) : op_(std::move(op)) {}

  template <class...>
  using value = T;

  template <class Done, class... Args>
  void operator()(call_scope const& scope, Done done, Args const&... args) const {
    auto call = std::make_shared<spawned_call>(scope.executor);
    if (scope.cancel != nullptr) scope.cancel->listen(call);
    call->template initiate<T>(
        [op = &op_, by = scope.by, kept = std::tuple<std::decay_t<Args>...>(args...)](auto handler) {
          std::apply([&](auto const&... each) { (*op)(each..., by, std::move(handler)); }, kept);
        },
        std::move(done));
  }

  void describe(std::vector<layer_description>&) const {}

 private:
  Op op_;
};

/// op(scope, done, args...): in the form of the layers.
template <class T, class Op>
class plain_operation {
 public:
  explicit plain_operation(Op op) : op_(std::move(op)) {}

  template <class...>
  using value = T;

  template <class Done, class... Args>
  void operator()(call_scope const& scope, Done done, Args const&... args) const {
    op_(scope, std::move(done), args...);
  }

  void describe(std::vector<layer_description>&) const {}

 private:
  Op op_;
};

/// A layer around what is inside.
template <class Inside, layer L>
class wrapped {
 public:
  wrapped(Inside inside, L outer) : inside_(std::move(inside)), layer_(std::move(outer)) {}

  template <class... Args>
  using value = typename Inside::template value<Args...>;

  template <class Done, class... Args>
  void operator()(call_scope const& scope, Done done, Args const&... args) const {
    layer_.template start<value<Args...>>(inside_, scope, std::move(done), args...);
  }

  void describe(std::vector<layer_description>& into) const {
    inside_.describe(into);
    into.push_back(layer_.describe(into.empty() ? call_figures{} : into.back().figures));
  }

 private:
  Inside inside_;
  L layer_;
};

}  // namespace detail

/// An operation with guards around it. Made by `start(...) | layer | ...`. It refers to the guards, which
/// must outlive it; it must outlive its calls, and what they started, itself. Calls may begin on any thread.
template <class Call, int Rank>
class stack {
 public:
  explicit stack(Call call) : call_(std::move(call)) {}

  /// The value of a call with these arguments.
  template <class... Args>
  using value = typename Call::template value<std::decay_t<Args>...>;

  /// Begins a call that has ended by `by`: `co_await guarded(executor, by, args...)`, or with any completion
  /// token `guarded(executor, by, args...)(token)`. Completion: `void(result<T>)`, on the token's executor
  /// (`executor` by default, which also runs the operation and provides the time), exactly once, never inside
  /// this call. The arguments are copied. Cancelling the token ends what is under way.
  template <class... Args>
  auto operator()(asio::any_io_executor executor, deadline by, Args&&... args) const {
    return async(asio::deferred, std::move(executor), by, std::forward<Args>(args)...);
  }

  /// The same with the token in front.
  template <class Token, class... Args>
  auto async(Token&& token, asio::any_io_executor executor, deadline by, Args&&... args) const {
    using T = value<Args...>;
    return asio::async_initiate<Token, void(result<T>)>(
        detail::next_initiation<T, Call>{&call_, std::move(executor)}, token, by,
        std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...));
  }

  /// The bare form, without a token: `done(result<T>)` is called once, perhaps inside this call. For layers
  /// and measurements.
  template <class Done, class... Args>
  void begin(call_scope const& scope, Done done, Args const&... args) const {
    call_(scope, std::move(done), args...);
  }

  /// What it amounts to: the layers from the inside out, and the worst case.
  [[nodiscard]] redoubt::plan plan() const {
    redoubt::plan out;
    call_.describe(out.layers);
    return out;
  }

  /// Another layer around it.
  template <goes_outside<Rank> L>
  [[nodiscard]] friend auto operator|(stack inside, L outer) {
    using next = detail::wrapped<Call, L>;
    return stack<next, L::rank>(next(std::move(inside.call_), std::move(outer)));
  }

 private:
  Call call_;
};

/// What is to be guarded: `op(args..., deadline)` -> `awaitable<result<T>>`, a coroutine. It runs on a strand
/// of the call's executor; a request to stop arrives as terminal cancellation. An exception becomes
/// `load_failed`.
template <class Op>
[[nodiscard]] auto start(Op op) {
  using call = detail::coroutine_operation<Op>;
  return stack<call, layer_rank::operation>(call(std::move(op)));
}

/// What is to be guarded: `op(args..., deadline, handler)`, which starts an Asio operation that completes
/// `handler` with `result<T>`. The handler has a strand and a cancellation slot associated.
template <class T, class Op>
[[nodiscard]] auto start_async(Op op) {
  using call = detail::asio_operation<T, Op>;
  return stack<call, layer_rank::operation>(call(std::move(op)));
}

/// What is to be guarded, in the form of the layers: `op(scope, done, args...)`; see `layer`.
template <class T, class Op>
[[nodiscard]] auto start_plain(Op op) {
  using call = detail::plain_operation<T, Op>;
  return stack<call, layer_rank::operation>(call(std::move(op)));
}

}  // namespace redoubt
