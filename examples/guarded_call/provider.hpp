// SPDX-License-Identifier: BSL-1.0
//
// A payment provider on a loopback port that fails as it is told. It stands for somebody else's service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

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
  gone,          ///< The port is closed: from now on connections are refused.
};

/// One payment of the demonstration.
struct payment {
  std::string name;
  std::deque<behaviour> script;  ///< What the provider does with its requests; then it charges.
  int requests;                  ///< How many it should get.
  bool paid;                     ///< Whether the customer should have paid in the end, and that once.
};
/// All of them.
[[nodiscard]] std::vector<payment> payments();

/// Charges once per Idempotency-Key and answers a known one with `Idempotent-Replayed: true`. Runs on one
/// thread, that of its context.
class provider {
 public:
  explicit provider(boost::asio::io_context& context);

  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }
  /// A new payment: what it does with its requests; then it charges. The numbers start again.
  void begin(std::deque<behaviour> script);
  /// Closes the port.
  void stop() { acceptor_.close(); }
  /// How often money was taken.
  [[nodiscard]] int charges() const noexcept { return charges_; }
  /// Requests that arrived.
  [[nodiscard]] int requests() const noexcept { return requests_; }

 private:
  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve(boost::asio::ip::tcp::socket peer);

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::deque<behaviour> script_;
  std::map<std::string, std::string> receipts_;
  int charges_ = 0;
  int requests_ = 0;
};

}  // namespace guarded_call
