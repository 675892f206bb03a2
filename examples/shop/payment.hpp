// SPDX-License-Identifier: BSL-1.0
//
// POST /orders/{order}/payment. No charge without admission: this route fails closed.
#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/client.hpp>
#include <redoubt/policy/admission.hpp>

#include "shop/payment_provider.hpp"
#include "shop/response.hpp"

namespace shop {

struct payment_options {
  /// How long a second attempt for the same order is refused. Longer than `provider_timeout`.
  redoubt::duration hold = std::chrono::seconds(30);
  /// Limit of asking the provider.
  redoubt::duration provider_timeout = std::chrono::seconds(10);
};

/// The admission keeps the shop from charging twice at once (a double click). The money is guarded by the
/// provider: every attempt for an order carries the same idempotency key and the same amount. With a provider
/// that does not recognise a key, keep a record of attempts and reconcile.
template <redoubt::redis_client Client = redoubt::client>
class payment {
 public:
  payment(Client& redis, payment_provider& provider, payment_options o = {})
      : provider_(provider),
        provider_timeout_(o.provider_timeout),
        admission_(redis, {.key = "payment:",
                           .hold = o.hold,
                           .handler_limit = o.provider_timeout,
                           .idempotency_prefix = "shop:order:"}) {}

  asio::awaitable<response> pay(std::string order, std::int64_t cents, redoubt::deadline by = {}) {
    auto ticket = co_await admission_.enter(order, by);
    switch (ticket.verdict()) {
      case redoubt::verdict::refused:
        co_return response{409, "A payment attempt already exists", "attempt exists"};
      case redoubt::verdict::unavailable:
        co_return response{503, "Payment admission unavailable", "unavailable: " + cause_of(ticket.error())};
      case redoubt::verdict::admitted: break;
    }
    auto const executor = co_await asio::this_coro::executor;
    redoubt::deadline const answer_by = earlier(by, redoubt::deadline_after(executor, provider_timeout_));
    switch (co_await provider_.charge(ticket.idempotency_key(), cents, answer_by)) {
      case charge_result::charged: co_return response{200, "Paid", "charged"};
      case charge_result::declined: co_return response{402, "The card was declined", "declined"};
      case charge_result::key_reused: break;
      // Neither "paid" nor "not paid" would be true. The entry stays, so a repeat waits for the hold to end
      // and then asks the provider again with the same key.
      case charge_result::no_answer:
        co_return response{504, "Payment is being checked", "provider did not answer"};
    }
    co_return response{500, "Payment failed", "idempotency key reused for another amount"};
  }

  /// The longest that `pay` takes: admission, then the provider.
  [[nodiscard]] redoubt::duration worst_case() const { return admission_.worst_case() + provider_timeout_; }
  [[nodiscard]] redoubt::admission_snapshot snapshot() const { return admission_.snapshot(); }

 private:
  payment_provider& provider_;
  redoubt::duration provider_timeout_;
  redoubt::admission<redoubt::fail_closed, Client> admission_;
};

}  // namespace shop
