// SPDX-License-Identifier: BSL-1.0
//
// Replies as C++ types.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
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

template <class T>
T parsed_number(std::string_view text, bool& ok) noexcept {
  T out{};
  auto const r = std::from_chars(text.data(), text.data() + text.size(), out);
  ok = r.ec == std::errc{} && r.ptr == text.data() + text.size() && !text.empty();
  return out;
}

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
/// | `std::map<std::string, U>`, `std::unordered_map<std::string, U>` | array of name, value, name, value |
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
  static result<std::string> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (r.is_integer()) return std::to_string(r.as_integer());
    if (!r.is_string() && !r.is_status()) return unexpected_reply(r, "a string");
    return std::move(r).take_string();
  }
};

template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>)
struct decoder<T> {
  static result<T> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (r.is_integer() && std::in_range<T>(r.as_integer())) return static_cast<T>(r.as_integer());
    if (r.is_string()) {
      bool ok = false;
      auto const n = parsed_number<T>(r.as_string(), ok);
      if (ok) return n;
    }
    return unexpected_reply(r, "an integer of the asked size");
  }
};

template <>
struct decoder<bool> {
  static result<bool> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (r.is_integer() && (r.as_integer() == 0 || r.as_integer() == 1)) return r.as_integer() == 1;
    if (r.is_string() && (r.as_string() == "0" || r.as_string() == "1")) return r.as_string() == "1";
    if (r.is_status() && r.as_string() == "OK") return true;
    return unexpected_reply(r, "a yes or no");
  }
};

template <>
struct decoder<double> {
  static result<double> from(reply r) {
    if (r.is_error()) return to_failure(r.as_error());
    if (r.is_integer()) return static_cast<double>(r.as_integer());
    if (r.is_string()) {
      bool ok = false;
      auto const n = parsed_number<double>(r.as_string(), ok);
      if (ok) return n;
    }
    return unexpected_reply(r, "a number");
  }
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

template <class Map>
struct map_decoder {
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

template <class U>
struct decoder<std::map<std::string, U>> : map_decoder<std::map<std::string, U>> {};
template <class U>
struct decoder<std::unordered_map<std::string, U>> : map_decoder<std::unordered_map<std::string, U>> {};

}  // namespace detail
}  // namespace redoubt
