// SPDX-License-Identifier: BSL-1.0
//
// The data of the fake server: databases of keys with a value and an expiry. Ordered containers throughout,
// so that the same commands give the same bytes on every platform.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace redoubt::testing::detail {

/// A sorted set: members by name and in the order of score, then name.
class sorted_set {
 public:
  using place = std::pair<double, std::string>;

  [[nodiscard]] std::optional<double> score(std::string_view member) const;
  /// Adds the member or changes its score.
  void put(std::string_view member, double score);
  bool erase(std::string_view member);
  [[nodiscard]] std::set<place> const& ordered() const noexcept { return order_; }
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

 private:
  std::map<std::string, double, std::less<>> scores_;
  std::set<place> order_;
};

/// Fields in the order in which they were added, as a small Redis hash keeps them.
using hash = std::vector<std::pair<std::string, std::string>>;
using list = std::deque<std::string>;
using value = std::variant<std::string, sorted_set, hash, list>;

/// The name that TYPE gives.
[[nodiscard]] std::string_view type_name(value const& v) noexcept;

/// A value with the unix time in milliseconds after which it is gone.
struct entry {
  value data;
  std::optional<std::int64_t> expires_at{};
};

/// All databases. `now` is unix time in milliseconds.
class keyspace {
 public:
  explicit keyspace(int databases) : databases_(static_cast<std::size_t>(databases)) {}

  [[nodiscard]] int databases() const noexcept { return static_cast<int>(databases_.size()); }
  /// The living entry, or null. An expired one is removed.
  [[nodiscard]] entry* find(int db, std::string_view key, std::int64_t now);
  [[nodiscard]] entry const* find(int db, std::string_view key, std::int64_t now) const;
  /// Stores a value without expiry.
  entry& put(int db, std::string_view key, value v);
  bool erase(int db, std::string_view key, std::int64_t now);
  void clear(int db) { table(db).clear(); }
  void clear();
  /// The names of the living, sorted.
  [[nodiscard]] std::vector<std::string> keys(int db, std::int64_t now) const;
  /// How many living keys have an expiry.
  [[nodiscard]] std::size_t expiring(int db, std::int64_t now) const;

 private:
  using database = std::map<std::string, entry, std::less<>>;

  [[nodiscard]] database& table(int db) { return databases_.at(static_cast<std::size_t>(db)); }
  [[nodiscard]] database const& table(int db) const { return databases_.at(static_cast<std::size_t>(db)); }

  std::vector<database> databases_;
};

}  // namespace redoubt::testing::detail
