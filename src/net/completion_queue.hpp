// SPDX-License-Identifier: BSL-1.0
//
// Calls that are to complete in another io_context than their client's.
#pragma once

#include <boost/asio/io_context.hpp>

#include <redoubt/core/brief_mutex.hpp>
#include <redoubt/net/pending_call.hpp>

namespace redoubt::detail {

namespace asio = boost::asio;

/// Completes calls in their order, each in a function of its own, so that several threads of the context
/// share them and `stop()` and exceptions come between any two. Only the first of many wakes a thread up from
/// outside; from inside, one posts the next, which wakes nobody up who is not needed. A service of the
/// context that they complete in. Thread-safe.
class completion_queue final : public asio::execution_context::service {
 public:
  using key_type = completion_queue;
  static asio::execution_context::id id;

  explicit completion_queue(asio::execution_context& context)
      : asio::execution_context::service(context),
        context_(static_cast<asio::io_context&>(context)) {}

  void add(call_list calls);
  [[nodiscard]] static completion_queue& of(asio::io_context& context);

 private:
  void shutdown() override;
  void post_next();
  void complete_next();

  asio::io_context& context_;
  brief_mutex mutex_;
  call_list waiting_;    // under the mutex
  bool posted_ = false;  // under the mutex: a function for the next of them is on its way
};

}  // namespace redoubt::detail
