// SPDX-License-Identifier: BSL-1.0
//
// What all TLS connections of a client share, and what their errors mean. Everything that protects a
// connection is set for each of them anew, from here: nothing depends on the connection before.
#pragma once

#include <string>

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

#include <redoubt/core/error.hpp>
#include <redoubt/net/options.hpp>

namespace redoubt::detail {

namespace asio = boost::asio;

/// A cause that a caller can be told.
struct tls_error {
  errc code = errc::tls_failed;
  std::string note;
};

/// Immutable once made; may be used by several threads.
class tls_context {
 public:
  /// Reads the files. Throws `std::invalid_argument` naming the option and the file, never the key's
  /// password.
  explicit tls_context(client_options const& options);

  [[nodiscard]] asio::ssl::context& native() noexcept { return context_; }

  /// Says to a fresh connection who its peer must be. False when OpenSSL does not take it.
  [[nodiscard]] bool prepare(SSL* connection) const;
  /// After a handshake without an error: true when the peer has proved to be who it must be.
  [[nodiscard]] bool proved(SSL* connection) const;

  /// Why a handshake failed.
  [[nodiscard]] tls_error handshake_error(SSL* connection, boost::system::error_code const& error) const;
  /// Why reading or writing failed.
  [[nodiscard]] tls_error stream_error(boost::system::error_code const& error) const;

 private:
  [[nodiscard]] std::string verify_text(long result) const;

  asio::ssl::context context_;
  std::string name_;  // the peer's, as its certificate must say it
  bool numeric_ = false;
  bool verifies_ = true;
  bool has_certificate_ = false;
};

}  // namespace redoubt::detail
