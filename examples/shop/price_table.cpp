// SPDX-License-Identifier: BSL-1.0
#include "shop/price_table.hpp"

#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <sqlite3.h>

#include <redoubt/async/clock.hpp>

#include "shop/blocking.hpp"

namespace shop {
namespace {

/// A prepared statement, and the end of it.
class statement {
 public:
  statement(sqlite3* db, std::string_view sql) : db_(db) {
    check(sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &handle_, nullptr));
  }
  statement(statement const&) = delete;
  statement& operator=(statement const&) = delete;
  ~statement() { sqlite3_finalize(handle_); }

  void bind(int position, std::string_view text) {
    check(sqlite3_bind_text(handle_, position, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  void bind(int position, std::int64_t number) { check(sqlite3_bind_int64(handle_, position, number)); }

  /// True when there is a row.
  bool step() {
    int const status = sqlite3_step(handle_);
    if (status != SQLITE_ROW && status != SQLITE_DONE) check(status);
    return status == SQLITE_ROW;
  }
  [[nodiscard]] std::int64_t number(int column) const { return sqlite3_column_int64(handle_, column); }
  [[nodiscard]] std::string text(int column) const {
    auto const* bytes = reinterpret_cast<char const*>(sqlite3_column_text(handle_, column));
    return std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
  }

 private:
  void check(int status) const {
    if (status != SQLITE_OK) throw std::runtime_error(std::string("database: ") + sqlite3_errmsg(db_));
  }

  sqlite3* db_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace

void price_table::closer::operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }

price_table::price_table(std::size_t threads) : pool_(threads) {
  sqlite3* db = nullptr;
  // One connection that SQLite guards with a mutex of its own.
  int const flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  int const status = sqlite3_open_v2(":memory:", &db, flags, nullptr);
  db_.reset(db);
  if (status != SQLITE_OK) throw std::runtime_error("database: cannot be opened");
  statement(db, "CREATE TABLE products (sku TEXT PRIMARY KEY, cents INTEGER NOT NULL, name TEXT NOT NULL)")
      .step();
}

asio::awaitable<product> price_table::read(std::string sku, redoubt::deadline by) {
  auto const executor = co_await asio::this_coro::executor;
  auto query = [this, sku = std::move(sku), by, executor] {
    if (by.passed(redoubt::now(executor))) throw std::runtime_error("database: no time left for the query");
    std::this_thread::sleep_for(extra_.load());
    return select(sku);
  };
  asio::awaitable<product> reading = run_blocking(pool_, std::move(query));
  co_return co_await std::move(reading);
}

product price_table::select(std::string const& sku) {
  ++reads_;
  statement row(db_.get(), "SELECT cents, name FROM products WHERE sku = ?");
  row.bind(1, sku);
  if (!row.step()) throw unknown_product(sku);
  return product{.cents = row.number(0), .name = row.text(1)};
}

void price_table::put(std::string const& sku, product const& p) {
  statement insert(db_.get(), "INSERT OR REPLACE INTO products VALUES (?, ?, ?)");
  insert.bind(1, sku);
  insert.bind(2, p.cents);
  insert.bind(3, p.name);
  insert.step();
}

}  // namespace shop
