// SPDX-License-Identifier: BSL-1.0
//
// An option that has no default: leaving it out of a designated initialiser does not compile.
#pragma once

#include <concepts>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace redoubt {

/// Holds a `T` and converts to and from it, but cannot be default constructed. Throws `std::out_of_range` for
/// an integer that `T` cannot hold: -1 is not four thousand million.
template <class T>
class required {
 public:
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::remove_cvref_t<U>, required>)
  constexpr required(U&& value) : value_(converted(std::forward<U>(value))) {}  // NOLINT: implicit on purpose

  /// The value.
  [[nodiscard]] constexpr T const& get() const noexcept { return value_; }
  constexpr operator T const&() const noexcept { return value_; }  // NOLINT: implicit on purpose

 private:
  template <class U>
  static constexpr T converted(U&& value) {
    if constexpr (std::integral<T> && std::integral<std::remove_cvref_t<U>>) {
      auto const out = static_cast<T>(value);
      if (!std::cmp_equal(out, value)) {
        throw std::out_of_range("redoubt: an option has a value that its type cannot hold");
      }
      return out;
    } else {
      return std::forward<U>(value);
    }
  }

  T value_;
};

}  // namespace redoubt
