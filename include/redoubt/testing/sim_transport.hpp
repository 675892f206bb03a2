// SPDX-License-Identifier: BSL-1.0
//
// A transport for `basic_connection` over a world's network. Users need not name it: a client made on a
// world's executor uses it by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/error_code.hpp>

#include <redoubt/async/direct_executor.hpp>
#include <redoubt/net/options.hpp>

namespace redoubt::testing {

namespace asio = boost::asio;

namespace detail {
class world_core;
struct sim_link;
}  // namespace detail

/// One simulated connection at a time. All functions on the strand; the world's thread only.
class sim_transport {
 public:
  using executor_type = asio::strand<redoubt::detail::direct_executor>;
  using addresses = std::vector<std::string>;
  using io_handler = std::function<void(boost::system::error_code, std::size_t)>;

  sim_transport(executor_type strand, client_options const& options);
  ~sim_transport();

  void async_resolve(std::function<void(errc, addresses)> done);
  void adopt(addresses found);
  void async_connect(time_point by, std::function<void(errc)> done);
  /// The TLS handshake as far as it can be seen from outside: two round trips, and the ways it fails.
  void async_secure(std::function<void(errc, std::string_view)> done);
  void async_read_some(asio::mutable_buffer buffer, io_handler done);
  void async_write_some(asio::const_buffer buffer, io_handler done);
  void close() noexcept;

 private:
  executor_type strand_;
  detail::world_core& core_;
  std::string endpoint_;
  addresses addresses_;
  std::shared_ptr<detail::sim_link> link_;
};

}  // namespace redoubt::testing
