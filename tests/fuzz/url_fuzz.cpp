// SPDX-License-Identifier: BSL-1.0
//
// Any text as a URL: a failure names its part and shows no secret; what is accepted survives being written
// again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <redoubt/net/options.hpp>

namespace {

std::string encoded(std::string_view text) {
  std::string out;
  for (char const c : text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    auto const byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte / 16];
    out += digits[byte % 16];
  }
  return out;
}

std::string written(redoubt::url_parts const& u) {
  if (!u.unix_path.empty()) {
    // The slash in front is part of the syntax.
    return "unix:///" + encoded(std::string_view(u.unix_path).substr(1)) +
           "?db=" + std::to_string(u.database);
  }
  std::string out = "redis://";
  if (!u.password.empty()) out += encoded(u.user) + ":" + encoded(u.password) + "@";
  out += u.host.find(':') == std::string::npos ? encoded(u.host) : "[" + encoded(u.host) + "]";
  if (u.port != 0) out += ":" + std::to_string(u.port);
  return out + "/" + std::to_string(u.database);
}

bool same(redoubt::url_parts const& a, redoubt::url_parts const& b) {
  return a.host == b.host && a.port == b.port && a.unix_path == b.unix_path && a.user == b.user &&
         a.password == b.password && a.database == b.database;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const url(reinterpret_cast<char const*>(data), size);
  auto const u = redoubt::parse_url(url);
  if (u) {
    if (u->host.empty() == u->unix_path.empty()) std::abort();
    if (!u->user.empty() && u->password.empty()) std::abort();
    auto const again = redoubt::parse_url(written(*u));
    if (!again || !same(*u, *again)) std::abort();
  } else {
    auto const f = u.error();
    if (f.code != redoubt::errc::bad_option || !f.detail->note.starts_with("url: ")) std::abort();
    // Nothing of the text is shown but the names of its parts, numbers, and the syntax that was expected.
    if (f.message().find("S3cr3t") != std::string::npos) std::abort();
    for (char const c : f.message()) {
      if (c < ' ' || c > '~') std::abort();
    }
  }
  redoubt::client_options o;
  o.url = url;
  auto const resolved = o.resolved();
  if (resolved && (!u && !url.empty())) std::abort();
  if (resolved && (!resolved->url.empty() || !resolved->validate())) std::abort();
  return 0;
}
