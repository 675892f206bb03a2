// SPDX-License-Identifier: BSL-1.0
//
// A wrong option is found where it was written: by the constructor that takes it, before any I/O.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// Thrown by `validate()` of an options struct, and so by every constructor that takes one. `what()` reads
/// like "rate_limiter: window is 0 ms, must be at least 1 ms".
class option_error : public std::invalid_argument {
 public:
  option_error(std::string_view owner, std::string_view field, std::string_view value, std::string_view rule);
  /// The name of the field that is out of range.
  [[nodiscard]] std::string const& field() const noexcept { return field_; }

 private:
  std::string field_;
};

namespace detail {

/// Throws `option_error` unless `ok`. The value is written out for the message only.
void require_option(bool ok, std::string_view owner, std::string_view field, std::string_view value,
                    std::string_view rule);
/// @copydoc require_option
void require_option(bool ok, std::string_view owner, std::string_view field, duration value,
                    std::string_view rule);
/// @copydoc require_option
void require_option(bool ok, std::string_view owner, std::string_view field, double value,
                    std::string_view rule);
/// @copydoc require_option
void require_option(bool ok, std::string_view owner, std::string_view field, std::uint64_t value,
                    std::string_view rule);

}  // namespace detail

}  // namespace redoubt
