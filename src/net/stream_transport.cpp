// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/stream_transport.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

namespace redoubt::detail {

stream_transport::stream_transport(executor_type strand, client_options const& options)
    : strand_(strand),
      where_(options.address),
      stall_limit_(options.reconnect.stall_limit),
      resolver_(options.resolver),
      socket_(strand) {}

stream_transport::~stream_transport() { close(); }

void stream_transport::async_resolve(std::function<void(errc, addresses)> handler) {
  addresses known;
  if (!where_.unix_path.empty()) {
    known.emplace_back(asio::local::stream_protocol::endpoint(where_.unix_path));
  } else {
    boost::system::error_code not_numeric;
    auto const numeric = asio::ip::make_address(where_.host, not_numeric);
    if (!not_numeric) known.emplace_back(asio::ip::tcp::endpoint(numeric, where_.port));
  }
  if (known.empty()) {
    look_up_ = name_resolver::of(strand_).resolve(
        resolver_, where_.host, where_.port, strand_,
        [h = std::move(handler)](errc code, name_resolver::addresses found) {
          h(code, addresses(found.begin(), found.end()));
        });
  } else {
    asio::post(strand_, [h = std::move(handler), known] { h(errc::unspecified, known); });
  }
}

std::size_t stream_transport::write_now(asio::const_buffer bytes, boost::system::error_code& error) {
  auto const n = socket_.write_some(bytes, error);
  if (error == asio::error::would_block || error == asio::error::try_again) error.clear();
  return n;
}

void stream_transport::close() noexcept {
  look_up_ = nullptr;
  if (auto const under_way = dial_.lock()) under_way->abandon();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace redoubt::detail
