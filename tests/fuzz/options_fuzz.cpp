// SPDX-License-Identifier: BSL-1.0
//
// Any options: a failure names a field and shows no secret; what is accepted can be resolved, and a second
// time without a change, and a connection core takes it.
//
// Input: records of a field's number, a shape and eight bytes of value; text fields take what follows as
// text.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "scripted_link.hpp"

namespace {

using redoubt::client_options;
using redoubt::duration;

class input {
 public:
  input(std::uint8_t const* data, std::size_t size) : rest_(reinterpret_cast<char const*>(data), size) {}
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    auto const out = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return out;
  }
  /// Small, near a round number, or anything.
  std::uint64_t number() {
    auto const shape = byte();
    if (shape < 128) return static_cast<std::uint64_t>(byte()) << shape % 60;
    std::uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | byte();
    return out;
  }
  std::string text() {
    std::size_t const wanted = byte();
    auto const n = std::min(wanted, rest_.size());
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }

 private:
  std::string_view rest_;
};

struct nobody final : redoubt::credentials_provider {
  void get(reply) override {}
};

void set_field(client_options& o, input& in) {
  auto const time = [&in] { return duration(static_cast<duration::rep>(in.number())); };
  auto const size = [&in] { return static_cast<std::size_t>(in.number()); };
  switch (in.byte() % 32) {
    case 0: o.url = in.text(); break;
    case 1: o.address.host = in.text(); break;
    case 2: o.address.port = static_cast<std::uint16_t>(in.number()); break;
    case 3: o.address.unix_path = in.text(); break;
    case 4: o.login.user = in.text(); break;
    case 5: o.login.password = "S3cr3t" + in.text(); break;
    case 6: o.login.database = static_cast<std::uint32_t>(in.number()); break;
    case 7: o.login.client_name = in.text(); break;
    case 8: o.credentials = std::make_shared<nobody>(); break;
    case 9: o.tls.enabled = !o.tls.enabled; break;
    case 10: o.tls.server_name = in.text(); break;
    case 11: o.tls.ca_file = in.text(); break;
    case 12: o.tls.certificate_file = in.text(); break;
    case 13: o.tls.key_file = in.text(); break;
    case 14: o.tls.key_password = "S3cr3t" + in.text(); break;
    case 15: o.tls.minimum = redoubt::tls_version::v1_3; break;
    case 16: o.tls.insecure_skip_verification = !o.tls.insecure_skip_verification; break;
    case 17: o.key_prefix = in.text(); break;
    case 18: o.timeouts.connect = time(); break;
    case 19: o.timeouts.attempt = time(); break;
    case 20: o.timeouts.call = time(); break;
    case 21: o.bounds.in_flight = size(); break;
    case 22: o.bounds.queued_bytes = size(); break;
    case 23: o.bounds.reply_bytes = size(); break;
    case 24: o.bounds.array_elements = size(); break;
    case 25: o.bounds.depth = size(); break;
    case 26: o.bounds.late_replies = size(); break;
    case 27: o.reconnect.backoff = {time(), time()}; break;
    case 28: o.reconnect.refused_pause = time(); break;
    case 29: o.reconnect.stall_limit = time(); break;
    case 30: o.reconnect.ping_interval = time(); break;
    default: o.connections = static_cast<std::uint32_t>(in.number()); break;
  }
}

bool same(client_options const& a, client_options const& b) {
  return a.url == b.url && a.address.host == b.address.host && a.address.port == b.address.port &&
         a.address.unix_path == b.address.unix_path && a.login.user == b.login.user &&
         a.login.password == b.login.password && a.login.database == b.login.database &&
         a.tls.enabled == b.tls.enabled && a.tls.server_name == b.tls.server_name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  input in(data, size);
  client_options o;
  while (!in.empty()) set_field(o, in);
  auto const resolved = o.resolved();
  if (auto const valid = o.validate(); static_cast<bool>(valid) != static_cast<bool>(resolved)) std::abort();
  if (!resolved) {
    auto const& f = resolved.error();
    if (f.code != redoubt::errc::bad_option || f.effect != redoubt::effect::none) std::abort();
    if (f.detail == nullptr || f.detail->note.empty()) std::abort();
    auto const said = f.message();
    if (said.find("S3cr3t") != std::string::npos) std::abort();
    for (char const c : said) {
      if (c < ' ' || c > '~') std::abort();
    }
    return 0;
  }
  auto const again = resolved->resolved();
  if (!again || !same(*resolved, *again)) std::abort();
  for (char const c : resolved->endpoint_text()) {
    if (static_cast<unsigned char>(c) < ' ') std::abort();
  }
  GTEST_FLAG_SET(break_on_failure, true);  // the link's own checks end the run, too
  test::scripted_link link(o);
  auto const t = link.get("k");
  link.advance(std::chrono::hours(3));
  if (t && t->ends != 1) std::abort();
  link.close(redoubt::deadline(link.time));
  return 0;
}
