// SPDX-License-Identifier: BSL-1.0
//
// The shop's database: products in an embedded SQLite table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include <redoubt/core/time.hpp>

#include "shop/product.hpp"

struct sqlite3;

namespace shop {

namespace asio = boost::asio;

/// SQLite's calls block, so they run on threads of their own. Thread-safe. Must end before the contexts that
/// its callers run on; what is under way then ends first.
class price_table {
 public:
  /// An empty table in memory; `threads` queries run at a time.
  explicit price_table(std::size_t threads = 8);

  /// The product; throws `unknown_product`, or `std::runtime_error` when the database fails. A query whose
  /// turn comes after `by` is not made.
  asio::awaitable<product> read(std::string sku, redoubt::deadline by);

  /// Adds or replaces a product.
  void put(std::string const& sku, product const& p);

  /// Queries made.
  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_; }

  /// Makes every query take this much longer: a database in trouble.
  void slow_down(redoubt::duration extra) noexcept { extra_ = extra; }

 private:
  struct closer {
    void operator()(sqlite3* db) const noexcept;
  };

  product select(std::string const& sku);

  std::unique_ptr<sqlite3, closer> db_;
  std::atomic<std::uint64_t> reads_ = 0;
  std::atomic<redoubt::duration> extra_ = redoubt::duration::zero();
  asio::thread_pool pool_;  // last, so that it ends first
};

}  // namespace shop
