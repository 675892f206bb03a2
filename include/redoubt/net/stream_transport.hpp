// SPDX-License-Identifier: BSL-1.0
//
// TCP and unix sockets behind one type.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/net/options.hpp>
#include <redoubt/net/resolver.hpp>

namespace redoubt::detail {

/// What an operating system's error at connecting means to a caller.
[[nodiscard]] errc connect_error(boost::system::error_code const& error) noexcept;

/// One socket at a time. All functions on the strand.
class stream_transport {
 public:
  using executor_type = asio::strand<asio::any_io_executor>;
  using addresses = name_resolver::addresses;

  stream_transport(executor_type strand, client_options const& options);

  /// Never blocks; numeric addresses and unix paths do not leave this thread. The handler runs on the strand.
  void async_resolve(name_resolver::handler handler);

  std::size_t adopt(addresses found) noexcept {
    addresses_ = std::move(found);
    return addresses_.size();
  }

  template <class Handler>
  void async_connect(std::size_t address, Handler handler) {
    boost::system::error_code error;
    open(addresses_[address], error);
    if (error) {
      asio::post(strand_, [h = std::move(handler), code = connect_error(error)]() mutable { h(code); });
      return;
    }
    socket_.async_connect(addresses_[address], [h = std::move(handler)](boost::system::error_code e) mutable {
      h(e ? connect_error(e) : errc::unspecified);
    });
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

 private:
  void open(addresses::value_type const& where, boost::system::error_code& error);

  executor_type strand_;
  address_options where_;
  asio::basic_stream_socket<asio::generic::stream_protocol, executor_type> socket_;
  addresses addresses_;
};

}  // namespace redoubt::detail
