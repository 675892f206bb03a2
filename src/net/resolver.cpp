// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/resolver.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/post.hpp>

namespace redoubt::detail {

asio::execution_context::id name_resolver::id;

/// Shared with the look-up threads, which may outlive the service.
struct name_resolver::shared_state {
  struct waiter {
    asio::any_io_executor executor;
    handler done;
  };
  using name = std::pair<std::string, std::uint16_t>;

  std::mutex mutex;
  bool down = false;
  std::map<name, std::vector<waiter>> waiting;

  /// Under the mutex, so that the context cannot be destroyed between the look at `down` and the post.
  void answer(name const& who, errc code, addresses const& found) {
    std::lock_guard const lock(mutex);
    if (down) return;
    auto const entry = waiting.find(who);
    for (auto& w : entry->second) {
      asio::post(w.executor,
                 [done = std::move(w.done), code, found]() mutable { done(code, std::move(found)); });
    }
    waiting.erase(entry);
  }
};

namespace {

name_resolver::addresses look_up(std::string const& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  name_resolver::addresses out;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return out;
  for (auto const* one = list; one != nullptr; one = one->ai_next) {
    out.emplace_back(one->ai_addr, one->ai_addrlen, one->ai_protocol);
  }
  ::freeaddrinfo(list);
  return out;
}

}  // namespace

name_resolver::name_resolver(asio::execution_context& context)
    : asio::execution_context::service(context),
      state_(std::make_shared<shared_state>()) {}

void name_resolver::resolve(std::string const& host, std::uint16_t port, asio::any_io_executor executor,
                            handler done) {
  shared_state::name const who{host, port};
  {
    std::lock_guard const lock(state_->mutex);
    auto& waiters = state_->waiting[who];
    waiters.push_back({std::move(executor), std::move(done)});
    if (waiters.size() > 1) return;  // somebody is asking already
  }
  try {
    std::thread([state = state_, who] {
      auto const found = look_up(who.first, who.second);
      state->answer(who, found.empty() ? errc::resolve_failed : errc::unspecified, found);
    }).detach();
  } catch (std::system_error const&) {
    state_->answer(who, errc::resolve_failed, {});  // no thread to be had
  }
}

name_resolver& name_resolver::of(asio::any_io_executor const& executor) {
  return asio::use_service<name_resolver>(asio::query(executor, asio::execution::context));
}

void name_resolver::shutdown() {
  decltype(state_->waiting) forgotten;
  std::lock_guard const lock(state_->mutex);
  state_->down = true;
  forgotten.swap(state_->waiting);
}

}  // namespace redoubt::detail
