// SPDX-License-Identifier: BSL-1.0
//
// Any bytes, cut in any way, give the same replies and the same verdict; what is kept stays within the
// bounds.
//
// Input: one byte that chooses the bounds, one that chooses the cuts, then what the peer sends.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include <redoubt/core/random.hpp>
#include <redoubt/resp/reader.hpp>

namespace {

struct outcome {
  std::vector<redoubt::reply> replies;
  redoubt::errc error = redoubt::errc::unspecified;
  bool at_boundary = false;
};

redoubt::reader_options bounds(std::uint8_t choice) {
  redoubt::reader_options o;
  if (choice & 1) o.reply_bytes = 64 + choice;
  if (choice & 2) o.array_elements = choice / 16;
  if (choice & 4) o.depth = 1 + choice % 7;
  return o;
}

outcome read(redoubt::reader_options const& o, std::string_view bytes, redoubt::random_source* cuts) {
  redoubt::reader r(o);
  outcome out;
  while (!bytes.empty()) {
    auto const size = cuts ? 1 + cuts->below(cuts->chance(1, 2) ? 4 : bytes.size()) : bytes.size();
    auto const piece = bytes.substr(0, size);
    bytes.remove_prefix(piece.size());
    r.feed(piece);
    while (auto next = r.next()) out.replies.push_back(std::move(*next));
    if (r.buffered() > o.reply_bytes + 1024 + piece.size() && r.error() == redoubt::errc::unspecified)
      std::abort();
  }
  out.error = r.error();
  out.at_boundary = r.at_boundary();
  if (out.error != redoubt::errc::unspecified && r.error_text().empty()) std::abort();
  if (r.error_text().size() > 300) std::abort();
  return out;
}

void within(redoubt::reader_options const& o, redoubt::reply const& r, std::size_t depth) {
  if (!r.is_array()) {
    if (r.as_string().size() > o.reply_bytes) std::abort();
    return;
  }
  if (depth > o.depth || r.as_array().size() > o.array_elements) std::abort();
  for (auto const& element : r.as_array()) within(o, element, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 2) return 0;
  auto const o = bounds(data[0]);
  redoubt::random_source cuts(data[1]);
  std::string_view const bytes(reinterpret_cast<char const*>(data) + 2, size - 2);
  auto const whole = read(o, bytes, nullptr);
  auto const pieces = read(o, bytes, &cuts);
  if (whole.replies != pieces.replies || whole.error != pieces.error) std::abort();
  if (whole.error == redoubt::errc::unspecified && whole.at_boundary != pieces.at_boundary) std::abort();
  for (auto const& r : whole.replies) {
    within(o, r, 1);
    std::ostringstream sink;
    sink << r;
  }
  return 0;
}
