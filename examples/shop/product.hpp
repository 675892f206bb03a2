// SPDX-License-Identifier: BSL-1.0
//
// What the catalog shows, and how it is written into the cache.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <redoubt/policy/codec.hpp>

namespace shop {

struct product {
  std::int64_t cents = 0;
  std::string name;
};

/// The shop has no such product: a 404, which has nothing to do with Redis.
class unknown_product : public std::runtime_error {
 public:
  explicit unknown_product(std::string const& sku) : std::runtime_error("no product " + sku) {}
};

}  // namespace shop

/// "1999 Moka pot". Whatever else Redis holds under the key is not a product and counts as a miss.
template <>
struct redoubt::codec<shop::product> {
  static std::string encode(shop::product const& p) { return std::to_string(p.cents) + " " + p.name; }

  static std::optional<shop::product> decode(std::string_view bytes) {
    shop::product p;
    auto const [stop, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), p.cents);
    auto const digits = static_cast<std::size_t>(stop - bytes.data());
    if (error != std::errc{} || digits == bytes.size() || bytes[digits] != ' ') return std::nullopt;
    p.name = bytes.substr(digits + 1);
    return p;
  }
};
