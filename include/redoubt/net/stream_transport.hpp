// SPDX-License-Identifier: BSL-1.0
//
// TCP and unix sockets behind one type.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/buffer.hpp>

#include <redoubt/core/random_seeds.hpp>
#include <redoubt/net/dial.hpp>
#include <redoubt/net/options.hpp>
#include <redoubt/net/resolver.hpp>

namespace redoubt::detail {

/// One socket at a time. All functions on the strand.
class stream_transport {
 public:
  using executor_type = transport_executor;
  using addresses = dial::addresses;

  stream_transport(executor_type strand, client_options const& options);
  ~stream_transport();

  /// Never blocks; numeric addresses and unix paths do not leave this thread. The handler runs on the strand,
  /// or is forgotten at `close()`.
  void async_resolve(std::function<void(errc, addresses)> handler);

  void adopt(addresses found) noexcept { addresses_ = std::move(found); }

  /// Connects to one of the adopted addresses; all of them share the time until `by`. The handler must keep
  /// this object alive; it is forgotten at `close()`.
  template <class Handler>
  void async_connect(time_point by, Handler handler) {
    close();
    auto const fresh =
        std::make_shared<dial>(strand_, addresses_, by, stall_limit_, seeds_.next(),
                               [this, h = std::move(handler)](errc code, stream_socket socket) {
                                 if (code == errc::unspecified) socket_ = std::move(socket);
                                 h(code);
                               });
    dial_ = fresh;
    fresh->start();
  }

  template <class Buffer, class Handler>
  void async_read_some(Buffer buffer, Handler handler) {
    socket_.async_read_some(buffer, std::move(handler));
  }

  /// Writes what the socket takes at once. 0 without an error: it takes nothing now.
  std::size_t write_now(asio::const_buffer bytes, boost::system::error_code& error);

  template <class Buffer, class Handler>
  void async_write_some(Buffer buffer, Handler handler) {
    socket_.async_write_some(buffer, std::move(handler));
  }

  void close() noexcept;

  /// The connected socket, for a transport that puts something on top of it.
  [[nodiscard]] stream_socket release() noexcept { return std::move(socket_); }

 private:
  executor_type strand_;
  address_options where_;
  duration stall_limit_;
  std::shared_ptr<host_resolver> resolver_;
  random_seeds seeds_{std::nullopt};
  std::shared_ptr<void> look_up_;
  std::weak_ptr<dial> dial_;  // weak: it keeps its handler, which keeps this object
  stream_socket socket_;
  addresses addresses_;
};

}  // namespace redoubt::detail
