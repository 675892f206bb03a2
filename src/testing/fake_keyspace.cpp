// SPDX-License-Identifier: BSL-1.0
#include "fake_keyspace.hpp"

#include <algorithm>

namespace redoubt::testing::detail {
namespace {

bool expired(entry const& e, std::int64_t now) noexcept { return e.expires_at && now > *e.expires_at; }

}  // namespace

std::optional<double> sorted_set::score(std::string_view member) const {
  auto const found = scores_.find(member);
  if (found == scores_.end()) return std::nullopt;
  return found->second;
}

void sorted_set::put(std::string_view member, double score) {
  erase(member);
  scores_.emplace(member, score);
  order_.emplace(score, member);
}

bool sorted_set::erase(std::string_view member) {
  auto const found = scores_.find(member);
  if (found == scores_.end()) return false;
  order_.erase({found->second, found->first});
  scores_.erase(found);
  return true;
}

std::string_view type_name(value const& v) noexcept {
  constexpr std::string_view names[] = {"string", "zset", "hash", "list"};
  static_assert(std::size(names) == std::variant_size_v<value>);
  return names[v.index()];
}

entry* keyspace::find(int db, std::string_view key, std::int64_t now) {
  auto& keys = table(db);
  auto const found = keys.find(key);
  if (found == keys.end()) return nullptr;
  if (!expired(found->second, now)) return &found->second;
  keys.erase(found);
  return nullptr;
}

entry const* keyspace::find(int db, std::string_view key, std::int64_t now) const {
  auto const found = table(db).find(key);
  return found == table(db).end() || expired(found->second, now) ? nullptr : &found->second;
}

entry& keyspace::put(int db, std::string_view key, value v) {
  auto& place = table(db)[std::string(key)];
  place = entry{std::move(v)};
  return place;
}

bool keyspace::erase(int db, std::string_view key, std::int64_t now) {
  if (find(db, key, now) == nullptr) return false;
  table(db).erase(table(db).find(key));
  return true;
}

void keyspace::clear() {
  for (auto& one : databases_) one.clear();
}

std::vector<std::string> keyspace::keys(int db, std::int64_t now) const {
  std::vector<std::string> out;
  for (auto const& [key, e] : table(db)) {
    if (!expired(e, now)) out.push_back(key);
  }
  return out;
}

std::size_t keyspace::expiring(int db, std::int64_t now) const {
  return static_cast<std::size_t>(std::count_if(table(db).begin(), table(db).end(), [now](auto const& one) {
    return one.second.expires_at && !expired(one.second, now);
  }));
}

}  // namespace redoubt::testing::detail
