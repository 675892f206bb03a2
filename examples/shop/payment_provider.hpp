// SPDX-License-Identifier: BSL-1.0
//
// A payment provider in memory, with the property that guards the money: it charges once per idempotency key.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <boost/asio/awaitable.hpp>

#include <redoubt/core/time.hpp>

namespace shop {

namespace asio = boost::asio;

/// What the shop knows after it asked for a charge.
enum class charge_result : std::uint8_t {
  charged,     ///< Now, or when the key was seen for the first time.
  declined,    ///< Nothing was charged.
  no_answer,   ///< Not known: the card may have been charged.
  key_reused,  ///< The key belongs to a charge of another amount: a mistake of the shop.
};

/// Thread-safe. Must outlive the charges under way.
class payment_provider {
 public:
  struct options {
    /// How long it takes to answer.
    redoubt::duration latency = std::chrono::milliseconds(5);
    /// Cards are declined above this amount. A decline is not remembered.
    std::int64_t card_limit = 1'000'000;
  };

  payment_provider() = default;
  explicit payment_provider(options o) : options_(o) {}

  /// Charges `cents`, once per key: a repeated key gets the answer of the first time. `no_answer` at `by`.
  asio::awaitable<charge_result> charge(std::string key, std::int64_t cents, redoubt::deadline by);

  /// The next charge is made, but its answer never arrives.
  void lose_next_answer();

  /// Requests that arrived.
  [[nodiscard]] std::uint64_t requests() const;
  /// Cards that were charged.
  [[nodiscard]] std::uint64_t charges() const;

 private:
  charge_result settle(std::string const& key, std::int64_t cents);

  options const options_{};
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> charged_;  // amount by idempotency key
  std::uint64_t requests_ = 0;
  bool lose_next_ = false;
};

}  // namespace shop
