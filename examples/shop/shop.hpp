// SPDX-License-Identifier: BSL-1.0
//
// The shop: four routes over one Redis. Each has its own answer to "what when Redis is down", which can be
// read in its file; there is no global switch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <redoubt/client.hpp>

#include "shop/catalog.hpp"
#include "shop/health.hpp"
#include "shop/login.hpp"
#include "shop/payment.hpp"

namespace shop {

struct shop_options {
  catalog_options catalog{};
  payment_options payment{};
};

/// Four numbers that must not be one: only some of them wake somebody up at night.
struct shop_metrics {
  std::uint64_t redis_errors = 0;            ///< Calls that Redis did not answer well.
  std::uint64_t database_fallbacks = 0;      ///< Catalog reads that the cache could not answer.
  std::uint64_t login_limit_reached = 0;     ///< 429: somebody tries too often.
  std::uint64_t protection_unavailable = 0;  ///< 503: login and payment refused for want of Redis.
};

/// `Client` is `redoubt::client` in production and a fake in tests. The client, the table and the provider
/// must outlive the routes, and the routes the calls under way.
template <redoubt::redis_client Client = redoubt::client>
struct routes {
  routes(Client& redis, price_table& table, payment_provider& provider, shop_options o = {})
      : catalog(redis, table, o.catalog),
        login(redis),
        payment(redis, provider, o.payment),
        health(redis) {}

  shop::catalog<Client> catalog;
  shop::login<Client> login;
  shop::payment<Client> payment;
  shop::health<Client> health;

  [[nodiscard]] shop_metrics metrics() const {
    auto const products = catalog.snapshot();
    auto const logins = login.snapshot();
    auto const payments = payment.snapshot();
    return {.redis_errors = products.redis_errors + logins.redis_errors + payments.redis_errors,
            .database_fallbacks = products.fallbacks,
            .login_limit_reached = logins.refused,
            .protection_unavailable = logins.unavailable + payments.unavailable};
  }
};

/// How the shop's client is set up: no call takes longer than 150 ms, and no more than ten are under way.
inline redoubt::client_options client_options(std::string url) {
  using std::chrono::milliseconds;
  return {.url = std::move(url),
          .key_prefix = "shop:",
          .timeouts = {.connect = milliseconds(100), .attempt = milliseconds(100), .call = milliseconds(150)},
          .bounds = {.in_flight = 10}};
}

}  // namespace shop
