// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/connection.hpp>

#include <atomic>
#include <random>
#include <stdexcept>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>

#include <redoubt/net/call_operation.hpp>
#include <redoubt/net/stream_transport.hpp>

#include "completion_queue.hpp"

namespace redoubt::detail {
namespace {

std::atomic<tls_connection_maker> tls_maker = nullptr;
thread_local bool at_the_last = false;
thread_local harvest* innermost = nullptr;

// Gives away the calls at the beginning that are to complete in other contexts.
void deliver_elsewhere(call_list& calls) {
  while (!calls.empty()) {
    auto* const host = calls.front()->host();
    if (host == nullptr || host->get_executor().running_in_this_thread()) return;
    call_list together;
    do {
      together.push(calls.pop());
    } while (!calls.empty() && calls.front()->host() == host);
    // The calls keep the context at work until they have completed; this, until the post is behind us as
    // well.
    auto const work = asio::require(host->get_executor(), asio::execution::outstanding_work.tracked);
    completion_queue::of(*host).add(std::move(together));
  }
}

}  // namespace

asio::io_context* host_of(asio::any_io_executor const& executor) noexcept {
  using tracked = std::decay_t<decltype(asio::prefer(std::declval<asio::io_context::executor_type const&>(),
                                                     asio::execution::outstanding_work.tracked))>;
  if (auto const* const own = executor.target<tracked>()) return &asio::query(*own, asio::execution::context);
  if (auto const* const own = executor.target<asio::io_context::executor_type>()) {
    return &asio::query(*own, asio::execution::context);
  }
  return nullptr;
}

std::uint64_t connection_seed() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

void set_tls_connection_maker(tls_connection_maker maker) noexcept { tls_maker = maker; }

bool take_turn() noexcept { return std::exchange(at_the_last, false); }

void deliver_all(asio::any_io_executor const& executor, call_list calls) {
  for (;;) {
    deliver_elsewhere(calls);
    auto* const call = calls.pop();
    if (!call) return;
    at_the_last = calls.empty();
    try {
      call->deliver();
      at_the_last = false;
    } catch (...) {
      at_the_last = false;
      // The exception belongs to that handler's caller and leaves through the executor; the others are still
      // owed theirs.
      asio::post(executor,
                 [executor, rest = std::move(calls)]() mutable { deliver_all(executor, std::move(rest)); });
      throw;
    }
  }
}

harvest::harvest(connection const& owner) noexcept : owner_(&owner), outer_(std::exchange(innermost, this)) {}

harvest::~harvest() {
  if (innermost == this) innermost = outer_;
}

call_list harvest::take() noexcept {
  innermost = outer_;
  return std::move(calls_);
}

bool harvest::add(connection const& owner, call_list& calls) noexcept {
  if (!innermost || innermost->owner_ != &owner) return false;
  innermost->calls_.append(std::move(calls));
  return true;
}

asio::execution_context::id connection_factory::id;

std::vector<std::shared_ptr<connection>> connection_factory::make(asio::any_io_executor const& executor,
                                                                  client_options const& options,
                                                                  std::shared_ptr<load_gate> const& gate) {
  if (options.tls.enabled) {
    if (auto const maker = tls_maker.load()) return maker(executor, options, gate);
    throw std::invalid_argument(
        "redoubt::client_options: tls.enabled (a rediss:// URL sets it) needs the component redoubt::tls: "
        "link it and call redoubt::enable_tls() before the client is made");
  }
  std::vector<std::shared_ptr<connection>> out;
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    out.push_back(
        std::make_shared<basic_connection<stream_transport>>(executor, options, gate, connection_seed()));
  }
  return out;
}

void connection_factory::remember(std::vector<std::shared_ptr<connection>> const& made) {
  std::lock_guard const lock(mutex_);
  std::erase_if(made_, [](std::weak_ptr<connection> const& one) { return one.expired(); });
  made_.insert(made_.end(), made.begin(), made.end());
}

void connection_factory::shutdown() {
  // What is freed here may destroy clients, and even make new ones.
  for (;;) {
    decltype(made_) ending;
    {
      std::lock_guard const lock(mutex_);
      ending.swap(made_);
    }
    if (ending.empty()) return;
    for (auto const& weak : ending) {
      if (auto const one = weak.lock()) one->abandon();
    }
  }
}

void connection_factory::notify_fork(asio::execution_context::fork_event event) {
  if (event != asio::execution_context::fork_child) return;
  for (auto const& one : made_) {
    if (auto const connection = one.lock()) connection->leave_to_parent();
  }
}

connection_factory& connection_factory::of(asio::any_io_executor const& executor) {
  return asio::use_service<connection_factory>(asio::query(executor, asio::execution::context));
}

}  // namespace redoubt::detail
