// SPDX-License-Identifier: BSL-1.0
//
// Name look-up that nobody waits for. The system's resolver blocks, cannot be cancelled, and inside Asio it
// is joined when the context is destroyed and does one name after the other; so it runs here on a thread of
// its own that can be left behind. One look-up per name at a time: callers that ask for a name already being
// looked up share the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <redoubt/core/error.hpp>
#include <redoubt/net/late_executor.hpp>
#include <redoubt/net/providers.hpp>

namespace redoubt::detail {

/// A service of an execution context. Thread-safe. A thread exists only while a name is being looked up.
class name_resolver : public asio::execution_context::service {
 public:
  using key_type = name_resolver;
  using addresses = std::vector<asio::ip::tcp::endpoint>;
  /// `errc::unspecified` with at least one address, or `errc::resolve_failed`.
  using handler = std::function<void(errc, addresses)>;

  static asio::execution_context::id id;
  explicit name_resolver(asio::execution_context& context);

  /// Looks `host` up, in `source` or, when that is null, in the system, and posts the answer to `executor`.
  /// Does not count as work of the executor. Whoever lets go of the returned value is not answered any more;
  /// nobody is once the context is being destroyed.
  [[nodiscard]] std::shared_ptr<void> resolve(std::shared_ptr<host_resolver> const& source,
                                              std::string const& host, std::uint16_t port,
                                              asio::any_io_executor executor, handler done);

  [[nodiscard]] static name_resolver& of(asio::any_io_executor const& executor);

 private:
  struct shared_state;
  void shutdown() override {}
  std::shared_ptr<shared_state> state_;
};

}  // namespace redoubt::detail
