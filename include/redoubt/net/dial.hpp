// SPDX-License-Identifier: BSL-1.0
//
// From a name's addresses to one connected socket: performs what an `address_race` decides.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/direct_executor.hpp>
#include <redoubt/core/error.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/fsm/address_race.hpp>

namespace redoubt::detail {

using transport_executor = asio::strand<direct_executor>;
using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, transport_executor>;

/// What an operating system's error at connecting means to a caller.
[[nodiscard]] errc connect_error(boost::system::error_code const& error) noexcept;

/// One race. All functions on the strand; completes there, never inside `start()`.
class dial : public std::enable_shared_from_this<dial> {
 public:
  using addresses = std::vector<asio::generic::stream_protocol::endpoint>;
  /// `errc::unspecified` and a connected socket, or why there is none.
  using handler = std::function<void(errc, stream_socket)>;

  /// `stall_limit` is `reconnect_options::stall_limit`, which says what it means for a socket.
  dial(transport_executor strand, addresses where, time_point by, duration stall_limit, random_source random,
       handler done);

  void start();
  /// Closes every socket; the handler is not called.
  void abandon() noexcept;

 private:
  void go_on();
  void attempt(std::size_t address);
  void finish(errc code, stream_socket socket);

  transport_executor strand_;
  timer timer_;
  addresses addresses_;
  duration stall_limit_;
  std::vector<std::optional<stream_socket>> sockets_;  // by address; set while an attempt is under way
  address_race race_;
  handler done_;  // empty when all is over
};

}  // namespace redoubt::detail
