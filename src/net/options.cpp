// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/options.hpp>

#include <utility>

#include <fmt/format.h>

namespace redoubt {
namespace {

using namespace std::chrono_literals;

result<void> wrong(std::string text) {
  auto detail = std::make_shared<failure_detail>();
  detail->note = std::move(text);
  return failure{
      .code = errc::bad_option, .effect = effect::none, .rejected = true, .detail = std::move(detail)};
}

template <class T>
result<void> within(std::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return {};
  return wrong(fmt::format("{} = {} is not in {} .. {}", field, value, low, high));
}

result<void> within(std::string_view field, duration value, duration low, duration high) {
  if (value >= low && value <= high) return {};
  auto const us = [](duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d).count(); };
  return wrong(fmt::format("{} = {} us is not in {} .. {} us", field, us(value), us(low), us(high)));
}

struct text_rule {
  bool (*breaks)(unsigned char);
  std::string_view words;
};
constexpr text_rule no_control{[](unsigned char c) { return c < ' ' || c == 127; }, "no control characters"};
constexpr text_rule word{[](unsigned char c) { return c <= ' ' || c >= 127; },
                         "only printable ASCII without spaces"};

/// Fails for the first byte that breaks the rule. It is named with its place; the text is not shown, because
/// what was put into the wrong field may be a password.
result<void> follows(text_rule const& rule, std::string_view field, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const c = static_cast<unsigned char>(text[i]);
    if (rule.breaks(c)) {
      return wrong(fmt::format("{} has the byte 0x{:02x} at position {}: {}", field, c, i, rule.words));
    }
  }
  return {};
}

result<void> check_tls(client_options const& o) {
  auto const& t = o.tls;
  if (t.enabled) {
    if (!o.address.unix_path.empty()) return wrong("tls.enabled is set for a unix socket");
    if (t.certificate_file.empty() && !t.key_file.empty()) {
      return wrong("tls.key_file is set without tls.certificate_file");
    }
    if (t.certificate_file.empty() && !t.key_password.empty()) {
      return wrong("tls.key_password is set without tls.certificate_file");
    }
    return follows(no_control, "tls.server_name", t.server_name);
  }
  std::pair<std::string_view, bool> const fields[] = {
      {"server_name", !t.server_name.empty()},
      {"ca_file", !t.ca_file.empty()},
      {"certificate_file", !t.certificate_file.empty()},
      {"key_file", !t.key_file.empty()},
      {"key_password", !t.key_password.empty()},
      {"minimum", t.minimum != tls_version::v1_2},
      {"insecure_skip_verification", t.insecure_skip_verification},
  };
  for (auto const& [name, set] : fields) {
    if (set)
      return wrong(fmt::format("tls.{} is set, but nothing is encrypted: set tls.enabled too, or use "
                               "a rediss:// URL",
                               name));
  }
  return {};
}

result<void> check(client_options const& o) {
  constexpr duration shortest = 1us;
  constexpr duration longest = 1h;
  constexpr std::size_t kib = 1024;
  result<void> const all[] = {
      within("timeouts.connect", o.timeouts.connect, shortest, longest),
      within("timeouts.attempt", o.timeouts.attempt, shortest, longest),
      within("timeouts.call", o.timeouts.call, shortest, longest),
      within<std::size_t>("bounds.in_flight", o.bounds.in_flight, 1, 1'000'000),
      within<std::size_t>("bounds.queued_bytes", o.bounds.queued_bytes, kib, 4 * kib * kib * kib),
      within<std::size_t>("bounds.reply_bytes", o.bounds.reply_bytes, 64, 512 * kib * kib),
      within<std::size_t>("bounds.array_elements", o.bounds.array_elements, 1, 0x7fffffff),
      within<std::size_t>("bounds.depth", o.bounds.depth, 1, 7),
      within<std::size_t>("bounds.late_replies", o.bounds.late_replies, 1, 1'000'000),
      within("reconnect.backoff.base", o.reconnect.backoff.base, shortest, longest),
      within("reconnect.backoff.cap", o.reconnect.backoff.cap, o.reconnect.backoff.base, longest),
      within("reconnect.refused_pause", o.reconnect.refused_pause, 1ms, longest),
      within("reconnect.stall_limit", o.reconnect.stall_limit, o.timeouts.attempt, longest),
      within("reconnect.ping_interval", o.reconnect.ping_interval, 1ms, longest),
      within<std::uint32_t>("connections", o.connections, 1, 64),
      within<std::uint32_t>("login.database", o.login.database, 0, 0x7fffffff),
  };
  for (auto const& one : all) {
    if (!one) return one;
  }
  if (!o.login.user.empty() && o.login.password.empty()) {
    return wrong("login.user is set without login.password");
  }
  if (auto const ok = follows(word, "login.client_name", o.login.client_name); !ok) return ok;
  if (o.credentials && !o.login.password.empty()) {
    return wrong("login.password is set, in the URL perhaps, beside credentials");
  }
  if (auto const ok = check_tls(o); !ok) return ok;
  if (auto const n = o.address.unix_path.size(); n > 107) {
    return wrong(fmt::format("address.unix_path has {} bytes, a unix socket's has at most 107", n));
  }
  // The endpoint stands in every failure's sentence, and so in logs.
  if (auto const ok = follows(no_control, "address.unix_path", o.address.unix_path); !ok) return ok;
  return follows(no_control, "address.host", o.address.host);
}

}  // namespace

result<void> client_options::validate() const {
  auto r = resolved();
  if (!r) return r.error();
  return {};
}

result<client_options> client_options::resolved() const {
  auto out = *this;
  if (!url.empty()) {
    auto const parsed = parse_url(url);
    if (!parsed) return parsed.error();
    bool const own_address = !out.address.host.empty() || !out.address.unix_path.empty();
    if (!own_address) {
      out.address.host = parsed->host;
      out.address.unix_path = parsed->unix_path;
    }
    if (out.address.port == 0) out.address.port = parsed->port;
    if (out.login.password.empty()) {
      if (out.login.user.empty()) out.login.user = parsed->user;
      out.login.password = parsed->password;
    }
    if (parsed->tls) out.tls.enabled = true;
    if (out.login.database == 0) out.login.database = parsed->database;
  }
  if (out.address.host.empty()) out.address.host = "127.0.0.1";
  if (out.address.port == 0) out.address.port = 6379;
  out.url.clear();  // it may hold a password
  if (auto const ok = check(out); !ok) return ok.error();
  return out;
}

std::string client_options::endpoint_text() const {
  if (!address.unix_path.empty()) return address.unix_path;
  bool const v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace redoubt
