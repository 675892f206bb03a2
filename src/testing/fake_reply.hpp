// SPDX-License-Identifier: BSL-1.0
//
// Values to RESP2 bytes, and text to numbers with Redis' own strictness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redoubt::testing::detail {

/// Collects one reply.
class reply_writer {
 public:
  void status(std::string_view text);
  /// The line without '-'; line breaks become spaces, as in Redis.
  void error(std::string_view line);
  void integer(std::int64_t n);
  void bulk(std::string_view text);
  void nil() { bytes_ += "$-1\r\n"; }
  void nil_array() { bytes_ += "*-1\r\n"; }
  /// The header; the elements follow.
  void array(std::size_t size);
  /// A score: 17 significant digits, in a bulk string.
  void score(double value);
  /// Bytes that are RESP already.
  void raw(std::string_view bytes) { bytes_ += bytes; }
  void ok() { status("OK"); }

  [[nodiscard]] std::string const& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string take() noexcept { return std::move(bytes_); }
  [[nodiscard]] bool is_error() const noexcept { return bytes_.starts_with('-'); }

 private:
  void line(char type, std::string_view text);

  std::string bytes_;
};

/// A 64-bit integer in the one form that Redis accepts: no sign '+', no spaces, no leading zero.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
/// A floating point number, infinities included, NaN and surrounding spaces excluded.
[[nodiscard]] std::optional<double> parse_double(std::string_view text);
/// The same with more digits, for INCRBYFLOAT.
[[nodiscard]] std::optional<long double> parse_long_double(std::string_view text);
/// Up to 17 digits after the point, without trailing zeros.
[[nodiscard]] std::string format_long_double(long double value);
/// At most 17 significant digits.
[[nodiscard]] std::string format_double(double value);

/// `text` in lower case (ASCII).
[[nodiscard]] std::string lower(std::string_view text);
/// ASCII comparison without regard to case; `word` is in lower case.
[[nodiscard]] bool is_word(std::string_view text, std::string_view word) noexcept;
/// The glob of KEYS, SCAN and CONFIG GET: * ? [a-z] [^a] and backslash.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace redoubt::testing::detail
