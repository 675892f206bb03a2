// SPDX-License-Identifier: BSL-1.0
//
// GET /products/{sku}. A shop that cannot reach its cache still sells: this route fails open.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <fmt/format.h>

#include <redoubt/client.hpp>
#include <redoubt/guard/bulkhead.hpp>
#include <redoubt/policy/cache_aside.hpp>

#include "shop/price_table.hpp"
#include "shop/response.hpp"

namespace shop {

struct catalog_options {
  /// Database reads at a time, however many customers ask. Take it from a load test of your database.
  std::uint32_t database_slots = 8;
  /// Customers who may wait for one; everybody else is told to come back.
  std::uint32_t database_queue = 64;
  /// Limit of waiting for a slot and reading together.
  redoubt::duration load_timeout = std::chrono::milliseconds(500);
};

template <redoubt::redis_client Client = redoubt::client>
class catalog {
 public:
  catalog(Client& redis, price_table& table, catalog_options o = {})
      : database_({.name = "database", .slots = o.database_slots, .waiters = o.database_queue}),
        products_(redis,
                  [&table](std::string const& sku, redoubt::deadline by) { return table.read(sku, by); },
                  {.key = "product:",
                   .ttl = std::chrono::seconds(60),
                   .ttl_spread = 0.1,
                   .load_timeout = o.load_timeout,
                   .slots = &database_}) {}

  asio::awaitable<response> get(std::string sku, redoubt::deadline by = {}) {
    auto found = co_await products_.get(std::move(sku), by);
    if (found.busy()) co_return response{503, "Catalog is busy", "busy: " + cause_of(found.error())};
    try {
      product const& p = found.value();  // throws what the loader threw, as it is
      co_return response{200, fmt::format("{}: {}.{:02} EUR", p.name, p.cents / 100, p.cents % 100),
                         label_of(found)};
    } catch (unknown_product const&) {
      co_return response{404, "No such product", "unknown product"};
    }
  }

  /// The longest that `get` takes: read the cache, load, write the cache.
  [[nodiscard]] redoubt::duration worst_case() const { return products_.worst_case(); }
  [[nodiscard]] redoubt::cache_aside_snapshot snapshot() const { return products_.snapshot(); }

 private:
  static std::string label_of(redoubt::outcome<product> const& found) {
    std::string label = found.origin() == redoubt::origin::cached ? "cached" : "database";
    if (found.degraded()) label += ", cache: " + cause_of(found.why_degraded());
    return label;
  }

  redoubt::bulkhead database_;
  redoubt::cache_aside<std::string, product, Client> products_;
};

}  // namespace shop
