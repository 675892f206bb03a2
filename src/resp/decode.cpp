// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/decode.hpp>

#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <redoubt/resp/reader.hpp>

namespace redoubt {
namespace {

std::string_view kind_of(reply const& r) noexcept {
  if (r.is_nil()) return "nil";
  if (r.is_integer()) return "an integer";
  if (r.is_string()) return "a string";
  if (r.is_status()) return "a status line";
  if (r.is_error()) return "an error";
  return "an array";
}

/// Redis repeats arguments in its errors, in quotation marks: passwords, keys and values, which are no
/// business of a log. What stands between the first mark and the last of its kind is left out, unless it is
/// one of Redis' own words; an apostrophe, as in "can't", is no mark.
std::string without_arguments(std::string_view text) {
  text = text.substr(0, text.find(", with args beginning with"));
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const mark = text[i];
    if (mark != '\'' && mark != '`' && mark != '"') continue;
    if (i > 0 && text[i - 1] != ' ' && text[i - 1] != '(') continue;
    auto const last = text.rfind(mark);
    auto const content = text.substr(i + 1, last > i ? last - i - 1 : text.npos);
    auto const behind = last > i ? text.substr(last + 1) : std::string_view();
    if (content == "maxmemory" || content == "no" || behind.starts_with(" command")) break;
    return std::string(text.substr(0, i)).append("'...'").append(behind);
  }
  return std::string(text);
}

template <class T>
std::optional<T> whole_number(std::string_view text) noexcept {
  T out{};
  auto const r = std::from_chars(text.data(), text.data() + text.size(), out);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

failure unexpected_reply(reply const& got, std::string_view wanted) {
  auto text = std::make_shared<failure_detail>();
  text->note = fmt::format("wanted {}, got {}", wanted, kind_of(got));
  return failure{.code = errc::unexpected_reply,
                 .effect = effect::unknown,
                 .phase = phase::done,
                 .attempts = 1,
                 .detail = std::move(text)};
}

failure to_failure(server_error const& error) {
  auto text = std::make_shared<failure_detail>();
  text->server_text = escaped(without_arguments(error.text), 256);
  return failure{.code = errc::server_error,
                 .server = error.code,
                 .effect = error.effect,
                 .phase = phase::done,
                 .attempts = 1,
                 .detail = std::move(text)};
}

namespace detail {

template <>
std::optional<std::int64_t> parsed(std::string_view text) noexcept {
  return whole_number<std::int64_t>(text);
}
template <>
std::optional<std::uint64_t> parsed(std::string_view text) noexcept {
  return whole_number<std::uint64_t>(text);
}

result<std::string> decoder<std::string>::from(reply r) {
  if (r.is_error()) return to_failure(r.as_error());
  if (r.is_integer()) return std::to_string(r.as_integer());
  if (!r.is_string() && !r.is_status()) return unexpected_reply(r, "a string");
  return std::move(r).take_string();
}

result<bool> decoder<bool>::from(reply r) {
  if (r.is_error()) return to_failure(r.as_error());
  if (r.is_integer() && (r.as_integer() == 0 || r.as_integer() == 1)) return r.as_integer() == 1;
  if (r.is_string() && (r.as_string() == "0" || r.as_string() == "1")) return r.as_string() == "1";
  if (r.is_status() && r.as_string() == "OK") return true;
  return unexpected_reply(r, "a yes or no");
}

result<double> decoder<double>::from(reply r) {
  if (r.is_error()) return to_failure(r.as_error());
  if (r.is_integer()) return static_cast<double>(r.as_integer());
  if (r.is_string()) {
    if (auto const n = whole_number<double>(r.as_string())) return *n;
  }
  return unexpected_reply(r, "a number");
}

}  // namespace detail

}  // namespace redoubt
