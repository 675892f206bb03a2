// SPDX-License-Identifier: BSL-1.0
//
// Any executor, for what runs many thousand times a second: a function pointer, a copy and an allocation for
// each question would cost more than the work itself.
#pragma once

#include <concepts>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

namespace redoubt::detail {

namespace asio = boost::asio;

/// Runs things where an `any_io_executor` would, in the same cases inside the call. An `io_context`'s own
/// executor, which nearly everybody has, is called as what it is. Does not count as work: what waits in a
/// queue or for the network counts by itself. Copyable, thread-safe.
class direct_executor {
 public:
  /// A template, so that nothing is converted: whether this can be copied would depend on itself.
  template <std::same_as<asio::any_io_executor> Any>
  explicit direct_executor(Any const& executor) {
    auto const* const known = executor.template target<asio::io_context::executor_type>();
    if (known && asio::query(*known, asio::execution::blocking) == asio::execution::blocking.possibly) {
      native_ = &asio::query(*known, asio::execution::context);
    } else {
      other_ = executor;
    }
  }

  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept {
    if (native_) return *native_;
    return asio::query(other_, asio::execution::context);
  }
  [[nodiscard]] asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
    if (never_) return asio::execution::blocking.never;
    return asio::execution::blocking.possibly;
  }
  [[nodiscard]] direct_executor require(asio::execution::blocking_t::never_t) const {
    auto out = *this;
    if (!out.native_) out.other_ = asio::require(out.other_, asio::execution::blocking.never);
    out.never_ = true;
    return out;
  }
  [[nodiscard]] direct_executor require(asio::execution::blocking_t::possibly_t) const {
    auto out = *this;
    if (!out.native_) out.other_ = asio::prefer(out.other_, asio::execution::blocking.possibly);
    out.never_ = false;
    return out;
  }

  template <class Function>
  void execute(Function&& function) const {
    if (!native_) {
      other_.execute(std::forward<Function>(function));
    } else if (never_) {
      asio::require(native_->get_executor(), asio::execution::blocking.never)
          .execute(std::forward<Function>(function));
    } else {
      native_->get_executor().execute(std::forward<Function>(function));
    }
  }

  friend bool operator==(direct_executor const& a, direct_executor const& b) noexcept {
    return a.native_ == b.native_ && a.never_ == b.never_ && a.other_ == b.other_;
  }

 private:
  asio::io_context* native_ = nullptr;
  bool never_ = false;
  asio::any_io_executor other_;  // when it is none of an io_context
};

static_assert(asio::execution::is_executor_v<direct_executor>);

}  // namespace redoubt::detail
