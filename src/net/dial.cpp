// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/dial.hpp>

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

namespace redoubt::detail {
namespace {

std::vector<int> families_of(dial::addresses const& where) {
  std::vector<int> out;
  for (auto const& one : where) out.push_back(one.protocol().family());
  return out;
}

void open(stream_socket& socket, asio::generic::stream_protocol protocol, boost::system::error_code& error) {
  socket.open(protocol, error);
  if (!error) socket.non_blocking(true, error);  // for write_now
  if (error || protocol.family() == AF_UNIX) return;
  boost::system::error_code ignored;  // a socket without the option still works
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}

}  // namespace

errc connect_error(boost::system::error_code const& error) noexcept {
  if (error == asio::error::connection_refused) return errc::connection_refused;
  if (error == boost::system::errc::no_such_file_or_directory) return errc::connection_refused;
  if (error == asio::error::timed_out) return errc::connect_timeout;
  return errc::connect_failed;
}

dial::dial(transport_executor strand, addresses where, time_point by, random_source random, handler done)
    : strand_(strand),
      timer_(strand),
      addresses_(std::move(where)),
      sockets_(addresses_.size()),
      race_(families_of(addresses_), timer_.now(), by, random),
      done_(std::move(done)) {}

void dial::start() {
  asio::post(strand_, [self = shared_from_this()] { self->go_on(); });
}

void dial::go_on() {
  while (done_) {
    auto const address = race_.next(timer_.now());
    if (!address) break;
    attempt(*address);
  }
  if (!done_) return;
  if (race_.lost()) return finish(race_.why(), stream_socket(strand_));
  if (auto const wake = race_.next_wakeup()) {
    timer_.async_wait_until(*wake, [self = shared_from_this()](boost::system::error_code error) {
      if (!error) self->go_on();
    });
  }
}

void dial::attempt(std::size_t address) {
  auto& socket = sockets_[address].emplace(strand_);
  boost::system::error_code error;
  open(socket, addresses_[address].protocol(), error);
  if (error) {
    sockets_[address].reset();
    return race_.on_failed(address, connect_error(error), timer_.now());
  }
  socket.async_connect(addresses_[address],
                       [self = shared_from_this(), address](boost::system::error_code e) {
                         if (!self->done_) return;
                         if (!e && self->race_.on_connected(address)) {
                           return self->finish(errc::unspecified, std::move(*self->sockets_[address]));
                         }
                         self->sockets_[address].reset();
                         self->race_.on_failed(address, connect_error(e), self->timer_.now());
                         self->go_on();
                       });
}

void dial::finish(errc code, stream_socket socket) {
  auto const done = std::exchange(done_, nullptr);
  abandon();
  done(code, std::move(socket));
}

void dial::abandon() noexcept {
  done_ = nullptr;
  timer_.cancel();
  for (auto& socket : sockets_) {
    boost::system::error_code ignored;
    if (socket) socket->close(ignored);
  }
}

}  // namespace redoubt::detail
