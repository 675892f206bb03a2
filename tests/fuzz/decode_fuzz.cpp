// SPDX-License-Identifier: BSL-1.0
//
// Any reply decoded as any type, and any line taken for an error, gives a value or a failure that says why.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <redoubt/resp/decode.hpp>
#include <redoubt/resp/reader.hpp>

namespace {

template <class T>
void decoded_as(redoubt::reply const& r) {
  auto const got = redoubt::decode<T>(r);
  if (got) return;
  auto const why = got.error();
  bool const known = why.code == redoubt::errc::unexpected_reply || why.code == redoubt::errc::server_error;
  if (!known || !why.detail || why.message().empty()) std::abort();
}

template <class T>
void integer(redoubt::reply const& r) {
  decoded_as<T>(r);
  auto const narrow = redoubt::decode<T>(r);
  auto const wide = redoubt::decode<std::int64_t>(r);
  // A value that fits is neither wrapped nor lost; one that does not is refused. (A text may be "-0", which
  // is no unsigned number.)
  if (wide && r.is_integer() && std::in_range<T>(*wide) != narrow.has_value()) std::abort();
  if (wide && narrow && !std::in_range<T>(*wide)) std::abort();
  if (wide && narrow && *wide != static_cast<std::int64_t>(*narrow)) std::abort();
}

void every_type(redoubt::reply const& r) {
  decoded_as<redoubt::reply>(r);
  decoded_as<std::string>(r);
  decoded_as<bool>(r);
  decoded_as<double>(r);
  integer<std::int8_t>(r);
  integer<std::uint16_t>(r);
  integer<int>(r);
  integer<std::uint64_t>(r);
  decoded_as<std::optional<std::string>>(r);
  decoded_as<std::vector<std::optional<std::string>>>(r);
  decoded_as<std::vector<std::vector<std::int64_t>>>(r);
  decoded_as<std::pair<std::string, std::int64_t>>(r);
  decoded_as<std::map<std::string, std::string>>(r);
  decoded_as<std::unordered_map<std::string, std::optional<double>>>(r);
  for (auto const& element : r.as_array()) every_type(element);
}

void an_error_line(std::string_view line) {
  auto const e = redoubt::parse_server_error(line);
  if (e.text != line || e.code == redoubt::server_errc::none) std::abort();
  auto const inside = redoubt::effect_inside_script(e);
  if (inside == redoubt::effect::none && e.effect != redoubt::effect::none) std::abort();
  auto const f = redoubt::to_failure(e);
  if (f.detail->server_text.size() > 4 * 256) std::abort();
  auto const text = f.message();
  for (char const c : text) {
    if (c < ' ' || c > '~') std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const bytes(reinterpret_cast<char const*>(data), size);
  an_error_line(bytes);
  redoubt::reader r({.reply_bytes = 64 * 1024, .array_elements = 1024});
  r.feed(bytes);
  while (auto next = r.next()) every_type(*next);
  return 0;
}
