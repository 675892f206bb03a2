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

/// Redis answers an unknown command with its arguments; those are keys and values, and no business of a log.
std::string_view without_arguments(std::string_view text) noexcept {
  return text.substr(0, text.find(", with args beginning with"));
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
