// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/script.hpp>

#include <boost/uuid/detail/sha1.hpp>

namespace redoubt {
namespace {

std::string hex_sha1(std::string_view text) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  boost::uuids::detail::sha1::digest_type digest;
  hash.get_digest(digest);
  // Five words up to Boost 1.85, twenty bytes since; both are big-endian when read from the front.
  constexpr auto item_bits = sizeof(digest[0]) * 8;
  std::string out;
  out.reserve(40);
  for (auto const item : digest) {
    for (auto shift = static_cast<int>(item_bits) - 4; shift >= 0; shift -= 4) {
      out += "0123456789abcdef"[(static_cast<unsigned>(item) >> shift) & 0xfu];
    }
  }
  return out;
}

}  // namespace

script::script(std::string body) {
  auto hash = hex_sha1(body);
  data_ = std::make_shared<data const>(data{std::move(body), std::move(hash)});
}

command eval_command(script const& s, keys const& k, args const& a, std::string_view prefix, bool by_sha1) {
  command out(by_sha1 ? "EVALSHA" : "EVAL", by_sha1 ? s.sha1() : s.body(), k.texts().size());
  for (auto const& key : k.texts()) {
    if (prefix.empty()) {
      out.add(key);
    } else {
      out.add(std::string(prefix) + key);
    }
  }
  for (auto const& arg : a.texts()) out.add(arg);
  return out;
}

}  // namespace redoubt
