// SPDX-License-Identifier: BSL-1.0
//
// An authority that makes certificates for tests, as PEM files in a temporary folder of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace redoubt::test_support {

/// What a certificate says. Names as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1".
struct certificate_request {
  std::string names;
  std::chrono::seconds valid_from = -std::chrono::hours(1);  ///< Counted from now.
  std::chrono::seconds valid_until = std::chrono::hours(24);
  std::string key_password{};  ///< Encrypts the key.
};

struct certificate_files {
  std::string certificate;
  std::string key;
};

/// Throws `std::runtime_error` when OpenSSL refuses. Not thread-safe.
class authority {
 public:
  /// `name` is what it calls itself, without proof.
  explicit authority(std::string const& name = "redoubt test authority");
  ~authority();
  authority(authority const&) = delete;
  authority& operator=(authority const&) = delete;

  /// Its own certificate.
  [[nodiscard]] std::string ca_file() const { return (dir_ / "ca.pem").string(); }
  [[nodiscard]] certificate_files issue(certificate_request const& what);

 private:
  struct inside;
  std::filesystem::path dir_;
  std::unique_ptr<inside> inside_;
  int issued_ = 0;
};

}  // namespace redoubt::test_support
