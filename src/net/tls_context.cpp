// SPDX-License-Identifier: BSL-1.0
#include "tls_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdexcept>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>

namespace redoubt::detail {
namespace {

/// The alert that the peer sent, RFC 8446 section 6; 0 when the error is none.
int alert_of(boost::system::error_code const& error) {
  if (error.category() != asio::error::get_ssl_category()) return 0;
  auto const reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256 ? reason - SSL_AD_REASON_OFFSET
                                                                              : 0;
}

bool speaks_of_our_certificate(int alert) noexcept {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:  // its signature is not its authority's
    case SSL_AD_CERTIFICATE_REQUIRED: return true;
    default: return false;
  }
}

void require(boost::system::error_code const& error, std::string_view option, std::string const& file) {
  if (!error) return;
  throw std::invalid_argument("redoubt::client_options: tls." + std::string(option) + " = " + file + ": " +
                              error.message());
}

}  // namespace

tls_context::tls_context(client_options const& options)
    : context_(asio::ssl::context::tls_client),
      name_(options.tls.server_name.empty() ? options.address.host : options.tls.server_name),
      verifies_(!options.tls.insecure_skip_verification),
      has_certificate_(!options.tls.certificate_file.empty()) {
  auto const& tls = options.tls;
  boost::system::error_code error;
  if (auto numeric = asio::ip::make_address(name_, error); !error) {
    numeric_ = true;
    if (numeric.is_v6()) {  // a zone is this machine's business, no certificate has it
      auto bare = numeric.to_v6();
      bare.scope_id(0);
      numeric = bare;
    }
    name_ = numeric.to_string();
  } else if (name_.ends_with('.')) {
    name_.pop_back();  // the root, which neither SNI nor a certificate mentions
  }

  auto* const native = context_.native_handle();
  auto const oldest = tls.minimum == tls_version::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
  if (SSL_CTX_set_min_proto_version(native, oldest) != 1) {
    throw std::invalid_argument("redoubt::client_options: tls.minimum is not offered by this OpenSSL");
  }
  if (!verifies_) {
    context_.set_verify_mode(asio::ssl::verify_none);
  } else {
    context_.set_verify_mode(asio::ssl::verify_peer);
    error.clear();
    if (tls.ca_file.empty()) {
      context_.set_default_verify_paths(error);
      require(error, "ca_file", "(the system's)");
    } else {
      context_.load_verify_file(tls.ca_file, error);
      require(error, "ca_file", tls.ca_file);
    }
  }
  if (!has_certificate_) return;
  context_.use_certificate_chain_file(tls.certificate_file, error);
  require(error, "certificate_file", tls.certificate_file);
  // Always: without a callback OpenSSL would ask on the terminal.
  context_.set_password_callback(
      [password = tls.key_password](std::size_t, asio::ssl::context::password_purpose) { return password; });
  auto const& key = tls.key_file.empty() ? tls.certificate_file : tls.key_file;
  context_.use_private_key_file(key, asio::ssl::context::pem, error);
  context_.set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); });
  require(error, tls.key_file.empty() ? "certificate_file (for its key)" : "key_file", key);
}

bool tls_context::prepare(SSL* connection) const {
  // SNI carries names only, RFC 6066 section 3.
  if (!numeric_ && SSL_set_tlsext_host_name(connection, name_.c_str()) != 1) return false;
  if (!verifies_) return true;
  SSL_set_hostflags(connection, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return (numeric_ ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), name_.c_str())
                   : SSL_set1_host(connection, name_.c_str())) == 1;
}

bool tls_context::proved(SSL* connection) const {
  return !verifies_ ||
         (SSL_get0_peer_certificate(connection) != nullptr && SSL_get_verify_result(connection) == X509_V_OK);
}

std::string tls_context::verify_text(long result) const {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the server's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "the server's certificate is not valid yet";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "the server's certificate is not for " + name_;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:  // an authority that only calls itself like ours
      return "the server's certificate comes from an authority that is not trusted";
    default: return std::string("the server's certificate: ") + X509_verify_cert_error_string(result);
  }
}

tls_error tls_context::handshake_error(SSL* connection, boost::system::error_code const& error) const {
  if (auto const result = SSL_get_verify_result(connection); verifies_ && result != X509_V_OK) {
    return {errc::tls_untrusted, verify_text(result)};
  }
  if (error.category() != asio::error::get_ssl_category()) {
    return {errc::tls_failed, "the peer ended the connection; perhaps it does not speak TLS"};
  }
  if (speaks_of_our_certificate(alert_of(error))) return stream_error(error);
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_WRONG_VERSION_NUMBER: return {errc::tls_failed, "the peer does not speak TLS"};
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return {errc::tls_failed, "no version of TLS in common (tls.minimum)"};
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      if (has_certificate_) break;
      // TLS 1.2 has no alert of its own for it.
      return {errc::tls_failed, "the server refused; perhaps it asks for a certificate of ours"};
    default: break;
  }
  return {errc::tls_failed, error.message()};
}

tls_error tls_context::stream_error(boost::system::error_code const& error) const {
  if (!speaks_of_our_certificate(alert_of(error))) return {errc::connection_lost, {}};
  return {errc::tls_untrusted, has_certificate_ ? "the server does not accept our certificate"
                                                : "the server asks for a certificate of ours"};
}

}  // namespace redoubt::detail
