// SPDX-License-Identifier: BSL-1.0
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <redoubt/net/options.hpp>

namespace redoubt {
namespace {

failure wrong(std::string text) {
  auto detail = std::make_shared<failure_detail>();
  detail->note = std::move(text);
  return failure{
      .code = errc::bad_option, .effect = effect::none, .rejected = true, .detail = std::move(detail)};
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Decodes %XX; nothing when an escape is incomplete.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    auto const high = hex_value(text[i + 1]);
    auto const low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

template <class T>
bool parse_number(std::string_view text, T& out) noexcept {
  auto const r = std::from_chars(text.data(), text.data() + text.size(), out);
  return r.ec == std::errc{} && r.ptr == text.data() + text.size() && !text.empty();
}

bool parse_database(std::string_view text, std::uint32_t& out) noexcept {
  return parse_number(text, out) && out <= 0x7fffffff;
}

result<url_parts> parse_unix(std::string_view rest) {
  url_parts out;
  auto const query = rest.find('?');
  auto const path = decoded(rest.substr(0, query));
  if (!path || path->empty() || path->front() != '/') {
    return wrong("url: a unix URL needs an absolute path, as in unix:///run/redis.sock");
  }
  if (path->size() > 107)
    return wrong(fmt::format("url: path of {} bytes, a unix socket's has at most 107", path->size()));
  if (path->find('\0') != std::string::npos) return wrong("url: the path contains a zero byte");
  out.unix_path = *path;
  if (query != std::string_view::npos) {
    auto const text = rest.substr(query + 1);
    if (!text.starts_with("db=") || !parse_database(text.substr(3), out.database)) {
      return wrong("url: only ?db=<number> may follow the path");
    }
  }
  return out;
}

/// `user:password@`; errors speak of positions, never of the text.
std::optional<failure> parse_login(std::string_view text, url_parts& out) {
  auto const colon = text.find(':');
  auto const user = decoded(text.substr(0, colon));
  if (!user) return wrong("url: bad percent-encoding in the user name");
  out.user = *user;
  if (colon == std::string_view::npos) {
    if (!out.user.empty())
      return wrong("url: a user name needs a password, as in redis://user:password@host");
    return std::nullopt;
  }
  auto const password = decoded(text.substr(colon + 1));
  if (!password) return wrong("url: bad percent-encoding in the password");
  if (password->empty()) return wrong("url: the password is empty");
  out.password = *password;
  return std::nullopt;
}

std::optional<failure> parse_host(std::string_view text, url_parts& out) {
  std::string_view port;
  if (text.starts_with('[')) {
    auto const close = text.find(']');
    if (close == std::string_view::npos) return wrong("url: host: '[' without ']'");
    auto const address = decoded(text.substr(1, close - 1));
    if (!address) return wrong("url: bad percent-encoding in the host");
    out.host = *address;
    // Names belong outside the brackets. What is an address, and what a zone, the look-up decides.
    if (!out.host.empty() && out.host.find(':') == std::string::npos) {
      return wrong("url: host: only an IPv6 address stands in brackets");
    }
    auto const behind = text.substr(close + 1);
    if (!behind.empty() && behind.front() != ':') return wrong("url: host: only a port may follow ']'");
    if (!behind.empty()) port = behind.substr(1);
    if (!behind.empty() && port.empty()) return wrong("url: port is empty");
  } else {
    auto const colon = text.find(':');
    if (text.find(':', colon == std::string_view::npos ? colon : colon + 1) != std::string_view::npos) {
      return wrong("url: host: an IPv6 address needs brackets, as in redis://[::1]:6379");
    }
    auto const host = decoded(text.substr(0, colon));
    if (!host) return wrong("url: bad percent-encoding in the host");
    out.host = *host;
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
    if (colon != std::string_view::npos && port.empty()) return wrong("url: port is empty");
  }
  if (out.host.empty()) return wrong("url: host is missing");
  for (char const c : out.host) {
    if (c <= ' ' || c == 127 || c == '/' || c == '@')
      return wrong("url: host contains a character that no host has");
  }
  if (!port.empty() && (!parse_number(port, out.port) || out.port == 0)) {
    // Not shown: where the host was forgotten, this is the password.
    return wrong("url: port must be a number in 1 .. 65535 (and user:password@ comes before the host)");
  }
  return std::nullopt;
}

}  // namespace

result<url_parts> parse_url(std::string_view url) {
  if (auto const at = url.find('#'); at != std::string_view::npos) {
    return wrong(fmt::format("url: '#' at position {} must be written as %23", at));
  }
  for (std::size_t i = 0; i < url.size(); ++i) {
    if (url[i] <= ' ' || url[i] == 127) {
      return wrong(
          fmt::format("url: a space or control character at position {} must be percent-encoded", i));
    }
  }
  constexpr std::string_view unix_scheme = "unix://";
  constexpr std::string_view tcp_scheme = "redis://";
  if (url.starts_with(unix_scheme)) return parse_unix(url.substr(unix_scheme.size()));
  constexpr std::string_view tls_scheme = "rediss://";
  url_parts out;
  out.tls = url.starts_with(tls_scheme);
  auto const scheme = out.tls ? tls_scheme : tcp_scheme;
  if (!url.starts_with(scheme)) return wrong("url: scheme must be redis://, rediss:// or unix://");

  auto rest = url.substr(scheme.size());
  if (auto const query = rest.find('?'); query != std::string_view::npos) {
    return wrong(
        fmt::format("url: '?' at position {}: {} takes no parameters", query + scheme.size(), scheme));
  }
  auto const slash = rest.find('/');
  auto authority = rest.substr(0, slash);
  if (auto const at = authority.rfind('@'); at != std::string_view::npos) {
    if (authority.find('@') != at)
      return wrong("url: '@' in the user name or password must be written as %40");
    if (auto f = parse_login(authority.substr(0, at), out)) return *f;
    authority.remove_prefix(at + 1);
  } else if (slash != std::string_view::npos && rest.find('@', slash) != std::string_view::npos) {
    return wrong("url: '/' in the user name or password must be written as %2F");
  }
  if (auto f = parse_host(authority, out)) return *f;
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    if (!parse_database(rest.substr(slash + 1), out.database)) {
      return wrong("url: database must be a number in 0 .. 2147483647");
    }
  }
  return out;
}

}  // namespace redoubt
