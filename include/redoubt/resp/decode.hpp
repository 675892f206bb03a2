// SPDX-License-Identifier: BSL-1.0
//
// Replies as C++ types.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <redoubt/core/result.hpp>
#include <redoubt/resp/reply.hpp>

namespace redoubt {

/// The failure for a reply of another type than the caller asked for: `errc::unexpected_reply`, effect
/// unknown (the command was executed). `wanted` names the type in the message.
[[nodiscard]] failure unexpected_reply(reply const& got, std::string_view wanted);

/// The failure for an error that stands inside an array.
[[nodiscard]] failure to_failure(server_error const& error);

namespace detail {

template <class T>
struct decoder;  // no definition: this type cannot be decoded

/// The whole text as a number; empty when it is none or does not fit.
template <class T>
[[nodiscard]] std::optional<T> parsed(std::string_view text) noexcept;
template <>
std::optional<std::int64_t> parsed(std::string_view text) noexcept;
template <>
std::optional<std::uint64_t> parsed(std::string_view text) noexcept;

}  // namespace detail

/// Turns a reply into a `T`, or says that it is something else. What is understood:
///
/// | `T` | from |
/// |---|---|
/// | `reply` | anything |
/// | `std::string` | bulk string, status line, integer (its digits) |
/// | integers | integer, or a string that is one; out of range is a failure, never a wrap |
/// | `bool` | 1 / 0, or the status `OK` |
/// | `double` | string (also `inf`), integer |
/// | `std::optional<U>` | nil is empty, else `U` |
/// | `std::vector<U>` | array |
/// | `std::pair<A, B>` | array of two |
/// | `std::map<std::string, U>`, `std::unordered_map<std::string, U>` and their like | array of name, value,
/// name, value |
///
/// nil is a failure for everything but `std::optional` and `reply`: a missing key is not an empty string.
template <class T>
[[nodiscard]] result<T> decode(reply r) {
  return detail::decoder<T>::from(std::move(r));
}

/// The same for the outcome of a call: a failure stays what it is.
template <class T>
[[nodiscard]] result<T> decode(result<reply> r) {
  if (!r) return std::move(r).error();
  return decode<T>(std::move(*r));
}

namespace detail {

template <>
struct decoder<reply> {
  static result<reply> from(reply r) { return r; }
};

template <>
struct decoder<std::string> {
  static result<std::string> from(reply r);
};

template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>)
struct decoder<T> {
  static result<T> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (r.is_integer() && std::in_range<T>(r.as_integer())) return static_cast<T>(r.as_integer());
    if (r.is_string()) {
      auto const n =
          parsed<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(r.as_string());
      if (n && std::in_range<T>(*n)) return static_cast<T>(*n);
    }
    return unexpected_reply(r, "an integer of the asked size");
  }
};

template <>
struct decoder<bool> {
  static result<bool> from(reply r);
};

template <>
struct decoder<double> {
  static result<double> from(reply r);
};

template <class U>
struct decoder<std::optional<U>> {
  static result<std::optional<U>> from(reply r) {
    if (r.is_nil()) return std::optional<U>();
    auto inner = decode<U>(std::move(r));
    if (!inner) return std::move(inner).error();
    return std::optional<U>(std::move(*inner));
  }
};

template <class U>
struct decoder<std::vector<U>> {
  static result<std::vector<U>> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (!r.is_array()) return unexpected_reply(r, "an array");
    std::vector<U> out;
    auto elements = std::move(r).take_array();
    out.reserve(elements.size());
    for (auto& element : elements) {
      auto one = decode<U>(std::move(element));
      if (!one) return std::move(one).error();
      out.push_back(std::move(*one));
    }
    return out;
  }
};

template <class A, class B>
struct decoder<std::pair<A, B>> {
  static result<std::pair<A, B>> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (!r.is_array() || r.as_array().size() != 2) return unexpected_reply(r, "an array of two");
    auto elements = std::move(r).take_array();
    auto first = decode<A>(std::move(elements[0]));
    if (!first) return std::move(first).error();
    auto second = decode<B>(std::move(elements[1]));
    if (!second) return std::move(second).error();
    return std::pair<A, B>(std::move(*first), std::move(*second));
  }
};

template <class T>
concept map_of_strings =
    std::same_as<typename T::key_type, std::string> && requires { typename T::mapped_type; };

template <map_of_strings Map>
struct decoder<Map> {
  static result<Map> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (!r.is_array() || r.as_array().size() % 2 != 0)
      return unexpected_reply(r, "an array of names and values");
    Map out;
    auto elements = std::move(r).take_array();
    for (std::size_t i = 0; i < elements.size(); i += 2) {
      auto name = decode<std::string>(std::move(elements[i]));
      if (!name) return std::move(name).error();
      auto value = decode<typename Map::mapped_type>(std::move(elements[i + 1]));
      if (!value) return std::move(value).error();
      out.insert_or_assign(std::move(*name), std::move(*value));
    }
    return out;
  }
};

}  // namespace detail
}  // namespace redoubt
