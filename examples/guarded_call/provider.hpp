// SPDX-License-Identifier: BSL-1.0
//
// A payment provider on a loopback port that fails as it is told. It stands for somebody else's service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace guarded_call {

/// What the provider does with the next request.
enum class behaviour : std::uint8_t {
  charge,        ///< 200.
  unavailable,   ///< 503, nothing charged.
  too_many,      ///< 429 with Retry-After: 1, nothing charged.
  lose_reply,    ///< Charges, and closes the connection instead of answering.
  stay_silent,   ///< Charges, and never answers.
  card_refused,  ///< 402, nothing charged.
};

/// Charges once per Idempotency-Key and answers a known one with `Idempotent-Replayed: true`. Runs on one
/// thread, that of its context.
class provider {
 public:
  explicit provider(boost::asio::io_context& context);

  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  /// What it does next; with an empty list it charges.
  void then(std::deque<behaviour> script) { script_ = std::move(script); }
  /// Closes the port: connections are refused from now on.
  void stop() { acceptor_.close(); }
  /// How often money was taken.
  [[nodiscard]] int charges() const noexcept { return charges_; }
  /// Requests that arrived.
  [[nodiscard]] int requests() const noexcept { return requests_; }

 private:
  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve(boost::asio::ip::tcp::socket peer);

  boost::asio::ip::tcp::acceptor acceptor_;
  std::deque<behaviour> script_;
  std::map<std::string, int> charged_;
  int charges_ = 0;
  int requests_ = 0;
};

}  // namespace guarded_call
