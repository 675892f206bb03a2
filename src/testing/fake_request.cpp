// SPDX-License-Identifier: BSL-1.0
#include "fake_request.hpp"

#include <cctype>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "fake_reply.hpp"

namespace redoubt::testing::detail {
namespace {

constexpr std::size_t line_max = 64 * 1024;

bool is_space(char c) noexcept { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The words of an inline command. Quotes keep spaces together; nothing for a quote that stays open or ends
// inside a word.
std::optional<arguments> split(std::string_view line) {
  arguments out;
  for (std::size_t i = 0; i < line.size();) {
    if (is_space(line[i])) {
      ++i;
      continue;
    }
    std::string word;
    char quote = 0;
    for (; i < line.size() && (quote != 0 || !is_space(line[i])); ++i) {
      char const c = line[i];
      if (quote == '"' && c == '\\' && i + 1 < line.size()) {
        word += line[++i];
      } else if (quote != 0 && c == quote) {
        if (i + 1 < line.size() && !is_space(line[i + 1])) return std::nullopt;
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else {
        word += c;
      }
    }
    if (quote != 0) return std::nullopt;
    out.push_back(std::move(word));
  }
  return out;
}

}  // namespace

std::optional<std::string_view> request_parser::take_line(char const* too_big) {
  auto const end = buffer_.find('\n', position_);
  if (end == std::string::npos) {
    if (buffer_.size() - position_ > line_max) error_ = too_big;
    return std::nullopt;
  }
  auto line = std::string_view(buffer_).substr(position_, end - position_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  position_ = end + 1;
  return line;
}

request_parser::step request_parser::inline_request(arguments& out) {
  auto const line = take_line("too big inline request");
  if (!line) return step::more;
  auto words = split(*line);
  if (!words) {
    error_ = "unbalanced quotes in request";
    return step::more;
  }
  out = *std::move(words);
  return out.empty() ? step::again : step::done;
}

request_parser::step request_parser::header(bool authenticated) {
  auto const line = take_line("too big mbulk count string");
  if (!line) return step::more;
  auto const count = parse_integer(line->substr(1));
  if (!count || *count > std::numeric_limits<int>::max()) {
    error_ = "invalid multibulk length";
    return step::more;
  }
  if (*count > 10 && !authenticated) {
    error_ = "unauthenticated multibulk length";
    return step::more;
  }
  if (*count > 0) missing_ = static_cast<std::size_t>(*count);  // an empty array is skipped without an answer
  return step::again;
}

request_parser::step request_parser::argument(bool authenticated) {
  if (!length_) {
    auto const line = take_line("too big bulk count string");
    if (!line) return step::more;
    if (!line->starts_with('$')) {
      error_ = fmt::format("expected '$', got '{}'", line->empty() ? '\r' : line->front());
      return step::more;
    }
    auto const length = parse_integer(line->substr(1));
    if (!length || *length < 0 || static_cast<std::size_t>(*length) > argument_bytes_max_) {
      error_ = "invalid bulk length";
      return step::more;
    }
    if (*length > 16384 && !authenticated) {
      error_ = "unauthenticated bulk length";
      return step::more;
    }
    length_ = static_cast<std::size_t>(*length);
  }
  if (buffer_.size() - position_ < *length_ + 2) return step::more;
  words_.emplace_back(buffer_, position_, *length_);
  position_ += *length_ + 2;
  length_.reset();
  if (--*missing_ != 0) return step::again;
  missing_.reset();
  return step::done;
}

std::optional<arguments> request_parser::next(bool authenticated) {
  auto now = step::again;
  while (error_.empty() && now == step::again) {
    if (missing_) {
      now = argument(authenticated);
    } else if (position_ == buffer_.size()) {
      now = step::more;
    } else if (buffer_[position_] == '*') {
      now = header(authenticated);
    } else {
      now = inline_request(words_);
    }
  }
  // Drop what was read, but not byte by byte from the front of a long buffer.
  if (position_ == buffer_.size() || position_ > 16 * 1024) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  if (now != step::done) return std::nullopt;
  return std::exchange(words_, {});
}

}  // namespace redoubt::testing::detail
