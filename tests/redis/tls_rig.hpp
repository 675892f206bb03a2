// SPDX-License-Identifier: BSL-1.0
//
// What the tests of TLS share: redis-servers that speak it, with certificates that the test has made.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <redoubt/tls.hpp>

#include "certificates.hpp"
#include "client_rig.hpp"

namespace redoubt::test_support {

/// A redis-server with a port for TLS beside its plain one, which serves the test as a back door.
class tls_redis {
 public:
  explicit tls_redis(authority const& ca, certificate_files const& identity,
                     std::vector<std::string> arguments = {})
      : tls_port_(free_port()),
        server_(with_tls(ca, identity, tls_port_, std::move(arguments))) {
    enable_tls();
  }

  [[nodiscard]] std::uint16_t tls_port() const noexcept { return static_cast<std::uint16_t>(tls_port_); }
  [[nodiscard]] real_redis& server() noexcept { return server_; }

  /// What it shows to connections from now on.
  void show(certificate_files const& identity) {
    raw_redis admin(server_.port());
    auto const reply =
        admin.call({"CONFIG", "SET", "tls-cert-file", identity.certificate, "tls-key-file", identity.key});
    if (reply != "+OK\r\n") throw std::runtime_error(reply);
  }

 private:
  static std::vector<std::string> with_tls(authority const& ca, certificate_files const& identity, int port,
                                           std::vector<std::string> more) {
    std::vector<std::string> out{
        "--tls-port", std::to_string(port), "--tls-cert-file", identity.certificate, "--tls-key-file",
        identity.key, "--tls-ca-cert-file", ca.ca_file(),      "--tls-auth-clients", "no"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  int tls_port_;
  real_redis server_;
};

/// Limits that no healthy call on a loaded machine reaches, and a short pause after a refusal.
[[nodiscard]] inline client_options over_tls(std::uint16_t port, authority const& trusted) {
  return {.address = {.host = "localhost", .port = port},
          .tls = {.enabled = true, .ca_file = trusted.ca_file()},
          .timeouts = {.connect = 20s, .attempt = 20s, .call = 20s},
          .reconnect = {.refused_pause = 1ms, .stall_limit = 30s}};
}

/// The failure of one call; the test fails when there is none.
[[nodiscard]] inline failure refused_by_tls(client_options const& options) {
  running_context context;
  client redis(context.io(), options);
  auto const got = call(redis, command("GET", "k"));
  EXPECT_FALSE(got);
  return got ? failure{} : got.error();
}

}  // namespace redoubt::test_support
