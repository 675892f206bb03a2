// SPDX-License-Identifier: BSL-1.0
#include "shop/payment_provider.hpp"

#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>

namespace shop {

asio::awaitable<charge_result> payment_provider::charge(std::string key, std::int64_t cents,
                                                        redoubt::deadline by) {
  redoubt::timer clock(co_await asio::this_coro::executor);
  charge_result const result = settle(key, cents);
  redoubt::deadline const answers_at(redoubt::saturating_add(clock.now(), options_.latency));
  bool const in_time = result != charge_result::no_answer && answers_at <= by;

  boost::system::error_code stopped;
  redoubt::time_point const until = in_time ? answers_at.at() : by.at();
  co_await clock.async_wait_until(until, asio::redirect_error(asio::use_awaitable, stopped));
  co_return in_time && !stopped ? result : charge_result::no_answer;
}

charge_result payment_provider::settle(std::string const& key, std::int64_t cents) {
  std::scoped_lock const lock(mutex_);
  ++requests_;
  bool const lost = std::exchange(lose_next_, false);
  auto const known = charged_.find(key);
  charge_result result = charge_result::charged;
  if (known == charged_.end()) {
    if (cents > options_.card_limit) {
      result = charge_result::declined;
    } else {
      charged_.emplace(key, cents);
    }
  } else if (known->second != cents) {
    result = charge_result::key_reused;
  }
  return lost ? charge_result::no_answer : result;
}

void payment_provider::lose_next_answer() {
  std::scoped_lock const lock(mutex_);
  lose_next_ = true;
}

std::uint64_t payment_provider::requests() const {
  std::scoped_lock const lock(mutex_);
  return requests_;
}

std::uint64_t payment_provider::charges() const {
  std::scoped_lock const lock(mutex_);
  return charged_.size();
}

}  // namespace shop
