// SPDX-License-Identifier: BSL-1.0
//
// One socket of a loopback server. Everything happens on the server's only thread.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/socket_base.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/testing/fake_server.hpp>

namespace redoubt::testing::detail {

namespace asio = boost::asio;

/// How sockets behave beside what the server says.
struct loopback_manners {
  struct drip {
    std::size_t bytes;
    duration every;
  };
  bool reads = true;
  std::optional<drip> slow{};
};

/// Owned by its own pending operations and by the server's table.
class loopback_connection : public std::enable_shared_from_this<loopback_connection> {
 public:
  using socket = asio::generic::stream_protocol::socket;

  loopback_connection(socket s, fake_server::session id, loopback_manners const& manners)
      : id_(id),
        manners_(manners),
        socket_(std::move(s)),
        timer_(socket_.get_executor()) {}

  /// Called for bytes, and with an empty view at the end of the stream.
  std::function<void(fake_server::session, std::string_view)> on_input;

  /// Starts to read unless a read is pending or the manners forbid it.
  void read() {
    if (reading_ || !manners_.reads || !socket_.is_open()) return;
    reading_ = true;
    // Waits first and reads then, so that what arrives after `stop_reading` stays in the kernel.
    socket_.async_wait(socket::wait_read, [self = shared_from_this()](boost::system::error_code error) {
      self->reading_ = false;
      if (error || !self->manners_.reads || !self->socket_.is_open()) return;
      self->take_bytes();
    });
  }

  /// Sends, closes or resets in its turn.
  void put(fake_server::output out) {
    auto const earliest = due_.empty() ? timer_.now() : due_.back().at;
    due_.push_back({std::max(earliest, saturating_add(timer_.now(), out.delay)), std::move(out)});
    if (!busy_) next();
  }

  /// Closes with a reset, at once.
  void reset() {
    boost::system::error_code ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    close();
  }

 private:
  struct item {
    time_point at;
    fake_server::output what;
  };

  void take_bytes() {
    boost::system::error_code error;
    auto const size = socket_.read_some(asio::buffer(block_), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) return read();
    on_input(id_, error ? std::string_view() : std::string_view(block_.data(), size));
    if (!error) read();
  }

  // Does what is due; `busy_` while something is pending.
  void next() {
    busy_ = false;
    while (!due_.empty() && socket_.is_open()) {
      auto& front = due_.front();
      if (front.at > timer_.now()) return wait_until(front.at);
      if (sent_ < front.what.bytes.size()) return write(front.what.bytes);
      sent_ = 0;
      auto const what = std::move(front.what);
      due_.pop_front();
      if (what.reset) return reset();
      if (what.close) return close();
    }
  }

  void wait_until(time_point when) {
    busy_ = true;
    timer_.async_wait_until(when, [self = shared_from_this()](boost::system::error_code) { self->next(); });
  }

  void write(std::string const& bytes) {
    busy_ = true;
    auto const left = bytes.size() - sent_;
    auto const size = manners_.slow ? std::min(left, manners_.slow->bytes) : left;
    socket_.async_write_some(asio::buffer(bytes.data() + sent_, size),
                             [self = shared_from_this()](boost::system::error_code error, std::size_t n) {
                               if (error) return self->close();
                               self->sent_ += n;
                               if (self->manners_.slow) {
                                 return self->wait_until(
                                     saturating_add(self->timer_.now(), self->manners_.slow->every));
                               }
                               self->next();
                             });
  }

  void close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    due_.clear();
  }

  fake_server::session id_;
  loopback_manners const& manners_;
  socket socket_;
  timer timer_;
  std::array<char, 16384> block_;
  bool reading_ = false;
  bool busy_ = false;
  std::deque<item> due_;
  std::size_t sent_ = 0;  // of the item at the front
};

}  // namespace redoubt::testing::detail
