// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/dial.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
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

template <class Unit>
int rounded_up(duration time) {
  return static_cast<int>(std::max<std::int64_t>(std::chrono::ceil<Unit>(time).count(), 1));
}

/// Lets the kernel end a connection whose peer has gone, see `reconnect_options::stall_limit`.
void watch(int socket, duration stall_limit) noexcept {
  auto const set = [socket](int level, int name, int value) {
    (void)::setsockopt(socket, level, name, &value,
                       sizeof(value));  // a socket without the option still works
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
  set(IPPROTO_TCP, TCP_KEEPIDLE, rounded_up<std::chrono::seconds>(stall_limit));
#endif
#ifdef TCP_KEEPINTVL
  set(IPPROTO_TCP, TCP_KEEPINTVL, rounded_up<std::chrono::seconds>(stall_limit));
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
#ifdef TCP_USER_TIMEOUT
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, rounded_up<std::chrono::milliseconds>(3 * stall_limit));
#endif
}

void open(stream_socket& socket, asio::generic::stream_protocol protocol, duration stall_limit,
          boost::system::error_code& error) {
  socket.open(protocol, error);
  if (!error) socket.non_blocking(true, error);  // for write_now
  if (error || protocol.family() == AF_UNIX) return;
  boost::system::error_code ignored;  // a socket without the option still works
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  watch(socket.native_handle(), stall_limit);
}

}  // namespace

errc connect_error(boost::system::error_code const& error) noexcept {
  if (error == asio::error::connection_refused) return errc::connection_refused;
  if (error == boost::system::errc::no_such_file_or_directory) return errc::connection_refused;
  if (error == asio::error::timed_out) return errc::connect_timeout;
  return errc::connect_failed;
}

dial::dial(transport_executor strand, addresses where, time_point by, duration stall_limit,
           random_source random, handler done)
    : strand_(strand),
      timer_(strand),
      addresses_(std::move(where)),
      stall_limit_(stall_limit),
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
  open(socket, addresses_[address].protocol(), stall_limit_, error);
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
