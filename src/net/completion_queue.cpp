// SPDX-License-Identifier: BSL-1.0
#include "completion_queue.hpp"

#include <mutex>
#include <utility>

#include <boost/asio/post.hpp>

namespace redoubt::detail {

asio::execution_context::id completion_queue::id;

completion_queue& completion_queue::of(asio::io_context& context) {
  return asio::use_service<completion_queue>(context);
}

void completion_queue::add(call_list calls) {
  {
    std::lock_guard const lock(mutex_);
    waiting_.append(std::move(calls));
    if (waiting_.empty() || std::exchange(posted_, true)) return;
  }
  post_next();
}

void completion_queue::post_next() {
  asio::post(context_, [this] { complete_next(); });
}

void completion_queue::complete_next() {
  pending_call* call = nullptr;
  bool more = false;
  {
    std::lock_guard const lock(mutex_);
    call = waiting_.pop();
    more = posted_ = !waiting_.empty();
  }
  if (more) post_next();  // before the handler, which may take its time
  if (call) call->complete();
}

void completion_queue::shutdown() {
  // Outside the mutex: handlers own whatever they like.
  call_list const ending = [this] {
    std::lock_guard const lock(mutex_);
    return std::move(waiting_);
  }();
}

}  // namespace redoubt::detail
