// SPDX-License-Identifier: BSL-1.0
//
// A shop that is open: its client, its database, its payment provider and its routes.
#pragma once

#include <chrono>
#include <string>

#include "outage/lab.hpp"
#include "shop/shop.hpp"

namespace outage {

/// What a measured wait may take beyond a computed one.
inline constexpr auto tolerance = std::chrono::milliseconds(20);

/// Short times for the provider, so that the demonstration need not wait for them.
inline shop::shop_options quick_options() {
  using std::chrono::milliseconds;
  return {.payment = {.hold = milliseconds(400), .provider_timeout = milliseconds(200)}};
}

/// Connected to the server of a condition, which is well yet.
struct store {
  store(lab& where, condition c, shop::shop_options options = quick_options())
      : redis(where.context(), shop::client_options(where.server(c).url())),
        routes(redis, table, provider, options) {
    where.connect(redis);
  }

  shop::price_table table;
  shop::payment_provider provider;
  redoubt::client redis;
  shop::routes<> routes;
};

}  // namespace outage
