// SPDX-License-Identifier: BSL-1.0
//
// How a cache writes values and keys. Specialise `codec` and `cache_key` for your own types.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace redoubt {

/// Turns a value into bytes and back. Specialise it for your type:
///
///     template <> struct redoubt::codec<price> {
///       static std::string encode(price const& p);
///       static std::optional<price> decode(std::string_view bytes);  // empty: not a price
///     };
///
/// `decode` gets whatever Redis holds under the key, so it must accept any bytes. Bytes it does not accept
/// (empty result or an exception) count as a miss. An exception from `encode` surfaces like one of the
/// loader.
template <class T>
struct codec;

/// Text of any bytes is stored as it is.
template <>
struct codec<std::string> {
  static std::string encode(std::string const& text) { return text; }
  static std::optional<std::string> decode(std::string_view bytes) { return std::string(bytes); }
};

/// Integers are stored in decimal; `bool` as 1 or 0.
template <std::integral T>
struct codec<T> {
  static std::string encode(T value) { return std::to_string(value); }
  static std::optional<T> decode(std::string_view bytes) {
    using wide = std::conditional_t<std::unsigned_integral<T>, unsigned long long, long long>;
    wide value{};
    auto const* const end = bytes.data() + bytes.size();
    auto const [stop, error] = std::from_chars(bytes.data(), end, value);
    if (error != std::errc{} || stop != end || static_cast<wide>(static_cast<T>(value)) != value)
      return std::nullopt;
    return static_cast<T>(value);
  }
};

/// A type that can be cached.
template <class T>
concept cacheable = std::movable<T> && requires(T const& value, std::string_view bytes) {
  { codec<T>::encode(value) } -> std::convertible_to<std::string>;
  { codec<T>::decode(bytes) } -> std::same_as<std::optional<T>>;
};

/// The text of a key. Specialise it for your type: `static std::string text(my_key const&)`. Different keys
/// must give different texts.
template <class Key>
struct cache_key;

/// Text is the key as it is.
template <std::convertible_to<std::string_view> Key>
struct cache_key<Key> {
  static std::string text(Key const& key) { return std::string(std::string_view(key)); }
};

/// Integers are written in decimal.
template <std::integral Key>
struct cache_key<Key> {
  static std::string text(Key key) { return std::to_string(key); }
};

/// A type that can be a cache's key.
template <class Key>
concept cache_keyable = std::copyable<Key> && requires(Key const& key) {
  { cache_key<Key>::text(key) } -> std::convertible_to<std::string>;
};

}  // namespace redoubt
