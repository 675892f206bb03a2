// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/stream_transport.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace redoubt::detail {

errc connect_error(boost::system::error_code const& error) noexcept {
  if (error == asio::error::connection_refused) return errc::connection_refused;
  if (error == boost::system::errc::no_such_file_or_directory) return errc::connection_refused;
  if (error == asio::error::timed_out) return errc::connect_timeout;
  return errc::connect_failed;
}

stream_transport::stream_transport(executor_type strand, client_options const& options)
    : strand_(strand),
      where_(options.address),
      socket_(strand) {}

void stream_transport::async_resolve(name_resolver::handler handler) {
  addresses known;
  if (!where_.unix_path.empty()) {
    known.emplace_back(asio::local::stream_protocol::endpoint(where_.unix_path));
  } else {
    boost::system::error_code not_numeric;
    auto const numeric = asio::ip::make_address(where_.host, not_numeric);
    if (!not_numeric) known.emplace_back(asio::ip::tcp::endpoint(numeric, where_.port));
  }
  if (known.empty()) {
    name_resolver::of(strand_).resolve(where_.host, where_.port, strand_, std::move(handler));
  } else {
    asio::post(strand_, [h = std::move(handler), known] { h(errc::unspecified, known); });
  }
}

void stream_transport::open(addresses::value_type const& where, boost::system::error_code& error) {
  close();
  auto const family = where.protocol().family();
  socket_.open(where.protocol(), error);
  if (!error) socket_.non_blocking(true, error);  // for write_now
  if (error || family == AF_UNIX) return;
  boost::system::error_code ignored;  // a socket without the option still works
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

std::size_t stream_transport::write_now(asio::const_buffer bytes, boost::system::error_code& error) {
  auto const n = socket_.write_some(bytes, error);
  if (error == asio::error::would_block || error == asio::error::try_again) error.clear();
  return n;
}

void stream_transport::close() noexcept {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace redoubt::detail
