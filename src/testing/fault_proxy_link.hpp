// SPDX-License-Identifier: BSL-1.0
//
// One connection through a fault proxy: two sockets and the bytes between them. Everything happens on the
// proxy's only thread.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/testing/fault_proxy.hpp>

namespace redoubt::testing::detail {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Owned by its own pending operations and by the proxy's table.
class proxy_link : public std::enable_shared_from_this<proxy_link> {
 public:
  proxy_link(asio::io_context& io, tcp::socket client, proxy_faults const& faults, proxy_counters& counters,
             std::uint64_t seed)
      : client_(std::move(client)),
        server_(io),
        pause_(io.get_executor()),
        counters_(counters),
        faults_(faults),
        up_(*this, io, client_, server_, faults.to_server, counters.bytes_to_server, seed),
        down_(*this, io, server_, client_, faults.to_client, counters.bytes_to_client, ~seed) {}

  void start(tcp::endpoint const& server) {
    pause_.async_wait_until(saturating_add(pause_.now(), faults_.accept_delay),
                            [self = shared_from_this(), server](boost::system::error_code error) {
                              if (!error) self->connect(server);
                            });
  }

  [[nodiscard]] bool open() const noexcept { return client_.is_open(); }

  /// The faults have changed.
  void kick() {
    if (!connected_) return;
    up_.kick();
    down_.kick();
  }

  void freeze() {
    frozen_ = true;
    kick();
  }

  void end(bool with_reset) {
    if (!open()) return;
    ++(with_reset ? counters_.reset : counters_.cut);
    close(with_reset);
  }

  /// Ends it without being counted as a fault.
  void close(bool with_reset) {
    for (auto* socket : {&client_, &server_}) {
      boost::system::error_code ignored;
      if (with_reset) socket->set_option(asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
    pause_.cancel();
    up_.stop();
    down_.stop();
  }

 private:
  /// One direction.
  class half {
   public:
    half(proxy_link& link, asio::io_context& io, tcp::socket& from, tcp::socket& to,
         direction_faults const& faults, std::uint64_t& counter, std::uint64_t seed)
        : link_(link),
          from_(from),
          to_(to),
          faults_(faults),
          counter_(counter),
          random_(seed),
          timer_(io.get_executor()) {}

    void kick() {
      // What has been put off may now be due earlier.
      timer_.cancel();
      next_ = time_point::min();
      last_ = std::min(last_, saturating_add(timer_.now(), faults_.delay + faults_.jitter));
      for (auto& one : pieces_) one.at = std::min(one.at, last_);
      read();
      send();
    }

    void stop() {
      timer_.cancel();
      pieces_.clear();
      held_ = 0;
    }

   private:
    struct piece {
      time_point at;
      std::string bytes;  // empty: the end
    };

    // Enough for any test's delay at loopback speed; more waits in the sender's socket.
    static constexpr std::size_t held_max = std::size_t{1} << 20;

    [[nodiscard]] bool blocked() const noexcept { return link_.frozen_ || faults_.blackhole; }

    void read() {
      if (reading_ || ended_ || blocked() || held_ >= held_max || !from_.is_open()) return;
      reading_ = true;
      // Waits first and reads then, so that what arrives in a black hole stays in the kernel.
      from_.async_wait(tcp::socket::wait_read,
                       [this, self = link_.shared_from_this()](boost::system::error_code e) {
                         reading_ = false;
                         if (!e && !blocked() && from_.is_open()) take_bytes();
                       });
    }

    void take_bytes() {
      boost::system::error_code error;
      auto const size = from_.read_some(asio::buffer(block_), error);
      if (error == asio::error::would_block || error == asio::error::interrupted) return read();
      if (error && error != asio::error::eof) return link_.close(true);
      auto const jitter = random_.below(static_cast<std::uint64_t>(faults_.jitter.count()) + 1);
      auto const late = faults_.delay + duration(static_cast<duration::rep>(jitter));
      last_ = std::max(last_, saturating_add(timer_.now(), late));
      pieces_.push_back({last_, std::string(block_.data(), size)});
      held_ += size;
      ended_ = static_cast<bool>(error);
      send();
      read();
    }

    void send() {
      if (sending_ || pieces_.empty() || blocked() || !to_.is_open()) return;
      auto const due = std::max(pieces_.front().at, next_);
      if (due > timer_.now()) return wait(due);
      auto const left = pieces_.front().bytes.size() - sent_;
      if (left == 0) return finish();
      auto size = left;
      if (faults_.slice) size = std::min(size, std::max<std::size_t>(*faults_.slice, 1));
      if (faults_.bandwidth) size = std::min(size, std::max<std::size_t>(*faults_.bandwidth / 100, 1));
      if (faults_.cut_after) {
        if (passed_ >= *faults_.cut_after) return link_.end(faults_.cut_with_reset);
        size = static_cast<std::size_t>(std::min<std::uint64_t>(size, *faults_.cut_after - passed_));
      }
      sending_ = true;
      to_.async_write_some(
          asio::buffer(pieces_.front().bytes.data() + sent_, size),
          [this, self = link_.shared_from_this()](boost::system::error_code error, std::size_t n) {
            sending_ = false;
            if (!link_.open() || pieces_.empty()) return;
            if (error) return link_.close(true);
            on_sent(n);
          });
    }

    void on_sent(std::size_t n) {
      passed_ += n;
      counter_ += n;
      sent_ += n;
      held_ -= n;
      auto pause = faults_.slice_pause;
      if (faults_.bandwidth) {
        auto const rate = static_cast<std::int64_t>(std::max<std::size_t>(*faults_.bandwidth, 1));
        pause += duration(static_cast<std::int64_t>(n) * 1'000'000'000 / rate);
      }
      next_ = saturating_add(timer_.now(), pause);
      if (sent_ == pieces_.front().bytes.size()) {
        pieces_.pop_front();
        sent_ = 0;
      }
      if (faults_.cut_after && passed_ >= *faults_.cut_after) return link_.end(faults_.cut_with_reset);
      send();
      read();
    }

    void finish() {
      pieces_.clear();
      boost::system::error_code ignored;
      to_.shutdown(tcp::socket::shutdown_send, ignored);
      done_ = true;
      if (link_.up_.done_ && link_.down_.done_) link_.close(false);
    }

    void wait(time_point when) {
      timer_.async_wait_until(when, [this, self = link_.shared_from_this()](boost::system::error_code error) {
        if (!error) send();
      });
    }

    proxy_link& link_;
    tcp::socket& from_;
    tcp::socket& to_;
    direction_faults const& faults_;
    std::uint64_t& counter_;
    random_source random_;
    timer timer_;
    std::array<char, 16384> block_;
    std::deque<piece> pieces_;
    std::size_t held_ = 0;  // bytes in `pieces_` that were not sent
    std::size_t sent_ = 0;  // of the piece at the front
    std::uint64_t passed_ = 0;
    time_point last_ = time_point::min();
    time_point next_ = time_point::min();
    bool reading_ = false;
    bool sending_ = false;
    bool ended_ = false;  // nothing more will come
    bool done_ = false;   // and the other side knows
  };

  void connect(tcp::endpoint const& server) {
    server_.async_connect(server, [self = shared_from_this()](boost::system::error_code error) {
      if (!self->open()) return;
      if (error) {
        ++self->counters_.server_failed;
        return self->close(true);
      }
      for (auto* socket : {&self->client_, &self->server_}) {
        boost::system::error_code ignored;
        socket->set_option(tcp::no_delay(true), ignored);
        socket->non_blocking(true, ignored);
      }
      self->connected_ = true;
      self->kick();
    });
  }

  tcp::socket client_;
  tcp::socket server_;
  timer pause_;
  proxy_counters& counters_;
  proxy_faults const& faults_;
  bool connected_ = false;
  bool frozen_ = false;
  half up_;
  half down_;
};

}  // namespace redoubt::testing::detail
