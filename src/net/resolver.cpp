// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/resolver.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/ip/address.hpp>

namespace redoubt::detail {
namespace {

using ip_list = std::vector<asio::ip::address>;

ip_list look_up(std::string const& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  ip_list out;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return out;
  for (auto const* one = list; one != nullptr; one = one->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::copy_n(reinterpret_cast<unsigned char const*>(one->ai_addr), one->ai_addrlen,
                reinterpret_cast<unsigned char*>(endpoint.data()));
    out.push_back(endpoint.address());
  }
  ::freeaddrinfo(list);
  return out;
}

ip_list parsed(std::vector<std::string> const& texts) {
  ip_list out;
  for (auto const& text : texts) {
    boost::system::error_code error;
    auto const address = asio::ip::make_address(text, error);
    if (!error) out.push_back(address);
  }
  return out;
}

}  // namespace

asio::execution_context::id name_resolver::id;

/// Shared with the look-ups under way, which may outlive the service.
struct name_resolver::shared_state {
  struct waiter {
    late_executor where;
    std::uint16_t port;
    std::weak_ptr<handler> done;
  };
  /// A name, and who looks it up. Weak: a resolver that keeps its replies would otherwise keep itself.
  struct name {
    std::weak_ptr<host_resolver> source;
    std::string host;
    bool operator<(name const& other) const noexcept {
      if (source.owner_before(other.source)) return true;
      return !other.source.owner_before(source) && host < other.host;
    }
  };

  std::mutex mutex;
  std::map<name, std::vector<waiter>> waiting;

  void answer(name const& who, ip_list const& found) {
    std::vector<waiter> all;
    {
      std::lock_guard const lock(mutex);
      if (auto const entry = waiting.find(who); entry != waiting.end()) {
        all = std::move(entry->second);
        waiting.erase(entry);
      }
    }
    for (auto const& one : all) {
      addresses out;
      for (auto const& address : found) out.emplace_back(address, one.port);
      one.where.post([done = one.done, a = std::move(out)]() mutable {
        auto const wanted = done.lock();
        auto const code = a.empty() ? errc::resolve_failed : errc::unspecified;
        if (wanted) (*wanted)(code, std::move(a));
      });
    }
  }
};

name_resolver::name_resolver(asio::execution_context& context)
    : asio::execution_context::service(context),
      state_(std::make_shared<shared_state>()) {}

std::shared_ptr<void> name_resolver::resolve(std::shared_ptr<host_resolver> const& source,
                                             std::string const& host, std::uint16_t port,
                                             asio::any_io_executor executor, handler done) {
  auto wanted = std::make_shared<handler>(std::move(done));
  shared_state::name const who{source, host};
  {
    std::lock_guard const lock(state_->mutex);
    auto const [entry, first] = state_->waiting.try_emplace(who);
    auto& all = entry->second;
    // A look-up that hangs for minutes must not gather those who have given up.
    std::erase_if(all, [](auto const& one) { return one.done.expired(); });
    all.push_back({late_executor(std::move(executor)), port, wanted});
    if (!first) return wanted;  // somebody is asking already
  }
  if (source) {
    // Called by anybody, any number of times: only the first answer of this look-up may count.
    auto reply =
        once_reply(std::vector<std::string>{}, [state = state_, who](std::vector<std::string> found) {
          state->answer(who, parsed(found));
        });
    try {
      source->resolve(host, std::move(reply));
    } catch (...) {  // nobody holds the reply any more, so it has been given
    }
    return wanted;
  }
  try {
    std::thread([state = state_, who] { state->answer(who, look_up(who.host)); }).detach();
  } catch (std::system_error const&) {
    state_->answer(who, {});  // no thread to be had
  }
  return wanted;
}

name_resolver& name_resolver::of(asio::any_io_executor const& executor) {
  return asio::use_service<name_resolver>(asio::query(executor, asio::execution::context));
}

}  // namespace redoubt::detail
