// SPDX-License-Identifier: BSL-1.0
//
// TLS over TCP. Like `stream_transport`, whose sockets it uses, with a handshake after connecting.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <redoubt/net/stream_transport.hpp>

#include "tls_context.hpp"

namespace redoubt::detail {

/// One connection at a time. All functions on the strand.
class tls_transport {
 public:
  using executor_type = transport_executor;
  using addresses = stream_transport::addresses;

  tls_transport(executor_type strand, client_options const& options, std::shared_ptr<tls_context> context)
      : strand_(strand),
        context_(std::move(context)),
        tcp_(strand, options) {}

  void async_resolve(std::function<void(errc, addresses)> handler) { tcp_.async_resolve(std::move(handler)); }
  void adopt(addresses found) noexcept { tcp_.adopt(std::move(found)); }

  template <class Handler>
  void async_connect(time_point by, Handler handler) {
    close();
    tcp_.async_connect(by, std::move(handler));
  }

  template <class Handler>
  void async_secure(Handler handler) {
    auto const fresh = std::make_shared<session>(tcp_.release(), context_->native());
    session_ = fresh;
    if (!context_->prepare(fresh->stream.native_handle())) {
      asio::post(strand_, [h = std::move(handler)] {
        h(errc::tls_failed, std::string_view("the host's name cannot be checked"));
      });
      return;
    }
    fresh->stream.async_handshake(
        asio::ssl::stream_base::client,
        [fresh, context = context_, h = std::move(handler)](boost::system::error_code error) {
          if (fresh->closed) return;
          auto* const native = fresh->stream.native_handle();
          if (!error && context->proved(native)) return h(errc::unspecified, std::string_view());
          auto const why = context->handshake_error(native, error);
          h(why.code, std::string_view(why.note));
        });
  }

  template <class Handler>
  void async_read_some(asio::mutable_buffer buffer, Handler handler) {
    auto const size = std::min(buffer.size(), session_->input.size());
    session_->stream.async_read_some(
        asio::buffer(session_->input.data(), size),
        [s = session_, buffer, h = std::move(handler)](boost::system::error_code error, std::size_t n) {
          if (s->closed) return;
          std::memcpy(buffer.data(), s->input.data(), n);
          // The stream's own steps belong to the strand; the handler may want to run outside of it.
          auto const where = asio::get_associated_executor(h, s->stream.get_executor());
          asio::post(where, [h, error, n] { h(error, n); });
        });
  }

  template <class Handler>
  void async_write_some(asio::const_buffer buffer, Handler handler) {
    auto const size = std::min(buffer.size(), session_->output.size());
    std::memcpy(session_->output.data(), buffer.data(), size);
    session_->stream.async_write_some(
        asio::buffer(session_->output.data(), size),
        [s = session_, h = std::move(handler)](boost::system::error_code error, std::size_t n) {
          // A failed write only says that the peer is gone. Why, an alert for example, is what the read under
          // way is about to say; every connection has one.
          if (!s->closed && !error) h(error, n);
        });
  }

  [[nodiscard]] tls_error explain(boost::system::error_code const& error) const {
    return context_->stream_error(error);
  }

  void close() noexcept {
    tcp_.close();
    auto const ended = std::exchange(session_, nullptr);
    if (!ended) return;
    ended->closed = true;
    boost::system::error_code ignored;
    ended->stream.next_layer().close(ignored);
  }

 private:
  // The stream's operations outlive `close()` and may look at their buffers once more, so these belong to the
  // session. A record of TLS carries at most 16 KiB.
  struct session {
    session(stream_socket socket, asio::ssl::context& context) : stream(std::move(socket), context) {}
    asio::ssl::stream<stream_socket> stream;
    bool closed = false;
    std::array<char, 16 * 1024> input;
    std::array<char, 16 * 1024> output;
  };

  executor_type strand_;
  std::shared_ptr<tls_context> context_;
  stream_transport tcp_;
  std::shared_ptr<session> session_;
};

}  // namespace redoubt::detail
