// SPDX-License-Identifier: BSL-1.0
//
// Name look-up that nobody waits for. The system's resolver blocks, cannot be cancelled, and inside Asio it
// is joined when the context is destroyed; so it runs here on a thread of its own that can be left behind.
// One look-up per name at a time: callers that ask for a name already being looked up share the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/core/error.hpp>

namespace redoubt::detail {

/// A service of an execution context. Thread-safe. A thread exists only while a name is being looked up.
class name_resolver : public asio::execution_context::service {
 public:
  using key_type = name_resolver;
  using addresses = std::vector<asio::generic::stream_protocol::endpoint>;
  /// `errc::unspecified` with at least one address, or `errc::resolve_failed`. Not called at all once the
  /// context is being destroyed.
  using handler = std::function<void(errc, addresses)>;

  static asio::execution_context::id id;
  explicit name_resolver(asio::execution_context& context);

  /// Looks `host` up and posts the answer to `executor`. Does not count as work of the executor.
  void resolve(std::string const& host, std::uint16_t port, asio::any_io_executor executor, handler done);

  [[nodiscard]] static name_resolver& of(asio::any_io_executor const& executor);

 private:
  struct shared_state;
  void shutdown() override;
  std::shared_ptr<shared_state> state_;
};

}  // namespace redoubt::detail
