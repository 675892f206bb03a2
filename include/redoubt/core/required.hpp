// SPDX-License-Identifier: BSL-1.0
//
// An option that has no default: leaving it out of a designated initialiser does not compile.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace redoubt {

/// Holds a `T` and converts to and from it, but cannot be default constructed.
template <class T>
class required {
 public:
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::remove_cvref_t<U>, required>)
  constexpr required(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: implicit on purpose

  /// The value.
  [[nodiscard]] constexpr T const& get() const noexcept { return value_; }
  constexpr operator T const&() const noexcept { return value_; }  // NOLINT: implicit on purpose

 private:
  T value_;
};

}  // namespace redoubt
