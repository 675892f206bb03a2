// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/decode.hpp>

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

}  // namespace redoubt
