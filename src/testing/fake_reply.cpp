// SPDX-License-Identifier: BSL-1.0
#include "fake_reply.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace redoubt::testing::detail {
namespace {

char lower_char(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// strtod and strtold accept what Redis refuses: leading spaces, and an early end.
template <class Number>
std::optional<Number> parse_float(std::string_view text, Number (*convert)(char const*, char**)) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  std::string const copy(text);
  char* end = nullptr;
  Number const value = convert(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  return value;
}

// One [...] of a glob; `pattern` stands behind the '[' and is moved to its ']'.
bool class_matches(std::string_view& pattern, char c) noexcept {
  bool const negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() >= 2) {
      pattern.remove_prefix(1);
      found = found || pattern.front() == c;
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      auto const [low, high] = std::minmax(pattern[0], pattern[2]);
      found = found || (low <= c && c <= high);
      pattern.remove_prefix(2);
    } else {
      found = found || pattern.front() == c;
    }
    pattern.remove_prefix(1);
  }
  return found != negated;
}

}  // namespace

void reply_writer::line(char type, std::string_view text) {
  bytes_ += type;
  for (char const c : text) bytes_ += (c == '\r' || c == '\n') ? ' ' : c;
  bytes_ += "\r\n";
}

void reply_writer::status(std::string_view text) { line('+', text); }
void reply_writer::error(std::string_view text) { line('-', text); }

void reply_writer::integer(std::int64_t n) { bytes_ += fmt::format(":{}\r\n", n); }
void reply_writer::array(std::size_t size) { bytes_ += fmt::format("*{}\r\n", size); }

void reply_writer::bulk(std::string_view text) {
  bytes_ += fmt::format("${}\r\n", text.size());
  bytes_ += text;
  bytes_ += "\r\n";
}

void reply_writer::score(double value) { bulk(format_double(value)); }

std::optional<std::int64_t> parse_integer(std::string_view text) {
  auto const digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits.front() == '0' && text != "0")) return std::nullopt;
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) { return parse_float<double>(text, &std::strtod); }

std::optional<long double> parse_long_double(std::string_view text) {
  return parse_float<long double>(text, &std::strtold);
}

std::string format_long_double(long double value) {
  auto text = fmt::format("{:.17Lf}", value);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string format_double(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.17g}", value);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower_char);
  return out;
}

bool is_word(std::string_view text, std::string_view word) noexcept {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower_char(a) == b; });
}

bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  while (!pattern.empty()) {
    char const c = pattern.front();
    if (c == '*') {
      pattern.remove_prefix(1);
      for (std::size_t skip = 0; skip <= text.size(); ++skip) {
        if (glob_matches(pattern, text.substr(skip))) return true;
      }
      return false;
    }
    if (text.empty()) return false;
    if (c == '[') {
      pattern.remove_prefix(1);
      if (!class_matches(pattern, text.front())) return false;
      if (pattern.empty()) return text.size() == 1;
    } else if (c == '\\' && pattern.size() >= 2) {
      pattern.remove_prefix(1);
      if (pattern.front() != text.front()) return false;
    } else if (c != '?' && c != text.front()) {
      return false;
    }
    pattern.remove_prefix(1);
    text.remove_prefix(1);
  }
  return text.empty();
}

}  // namespace redoubt::testing::detail
