// SPDX-License-Identifier: BSL-1.0
#include "certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace redoubt::test_support {
namespace {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using file_ptr = std::unique_ptr<std::FILE, freed_by<std::fclose>>;

void need(bool ok, char const* what) {
  if (!ok) throw std::runtime_error(std::string("OpenSSL: ") + what);
}

void extend(X509* certificate, X509* issuer, int what, std::string const& text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>> const extension(
      X509V3_EXT_conf_nid(nullptr, &context, what, text.c_str()));
  need(extension != nullptr, text.c_str());
  need(X509_add_ext(certificate, extension.get(), -1) == 1, "X509_add_ext");
}

file_ptr open(std::filesystem::path const& where) {
  file_ptr out(std::fopen(where.c_str(), "w"));
  need(out != nullptr, where.c_str());
  return out;
}

void write_certificate(std::filesystem::path const& where, X509* certificate) {
  need(PEM_write_X509(open(where).get(), certificate) == 1, "PEM_write_X509");
}

void write_key(std::filesystem::path const& where, EVP_PKEY* key, std::string password) {
  auto* const text = reinterpret_cast<unsigned char*>(password.data());
  need(PEM_write_PrivateKey(open(where).get(), key, password.empty() ? nullptr : EVP_aes_128_cbc(),
                            password.empty() ? nullptr : text, static_cast<int>(password.size()), nullptr,
                            nullptr) == 1,
       "PEM_write_PrivateKey");
}

certificate_ptr make(EVP_PKEY* key, std::string const& subject, int serial, certificate_request const& what) {
  certificate_ptr out(X509_new());
  need(out != nullptr, "X509_new");
  X509_set_version(out.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(out.get()), what.valid_from.count());
  X509_gmtime_adj(X509_getm_notAfter(out.get()), what.valid_until.count());
  X509_set_pubkey(out.get(), key);
  auto const* const name = reinterpret_cast<unsigned char const*>(subject.c_str());
  need(X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC, name, -1, -1, 0) == 1,
       "X509_NAME_add_entry_by_txt");
  return out;
}

}  // namespace

struct authority::inside {
  key_ptr key;
  certificate_ptr certificate;
};

authority::authority(std::string const& name) : inside_(std::make_unique<inside>()) {
  auto pattern = (std::filesystem::temp_directory_path() / "redoubt-certificates-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  dir_ = pattern;
  inside_->key.reset(EVP_EC_gen("P-256"));
  need(inside_->key != nullptr, "EVP_EC_gen");
  inside_->certificate = make(inside_->key.get(), name, 1, {});
  auto* const own = inside_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  extend(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  need(X509_sign(own, inside_->key.get(), EVP_sha256()) > 0, "X509_sign");
  write_certificate(ca_file(), own);
}

authority::~authority() {
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

certificate_files authority::issue(certificate_request const& what) {
  auto const number = ++issued_;
  key_ptr const key(EVP_EC_gen("P-256"));
  need(key != nullptr, "EVP_EC_gen");
  auto const made = make(key.get(), "redoubt test " + std::to_string(number), number + 1, what);
  X509_set_issuer_name(made.get(), X509_get_subject_name(inside_->certificate.get()));
  extend(made.get(), inside_->certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
  if (!what.names.empty()) {
    extend(made.get(), inside_->certificate.get(), NID_subject_alt_name, what.names);
  }
  need(X509_sign(made.get(), inside_->key.get(), EVP_sha256()) > 0, "X509_sign");
  auto const at = dir_ / std::to_string(number);
  write_certificate(at.string() + ".pem", made.get());
  write_key(at.string() + ".key", key.get(), what.key_password);
  return {at.string() + ".pem", at.string() + ".key"};
}

}  // namespace redoubt::test_support
