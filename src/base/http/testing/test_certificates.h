#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

namespace lockstep::http {

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* one) const {
    free(one);
  }
};
using TestKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using TestCertificate = std::unique_ptr<X509, Freed<X509_free>>;

/// A certificate and its key, made for a test.
class TestIdentity {
 public:
  /// Signed by `authority`, or by itself when that is null: then it is one. `valid_seconds` from an hour ago on.
  TestIdentity(const std::string& common_name, const TestIdentity* authority, long valid_seconds = 86'400)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509* certificate = certificate_.get();
    static long serial = 1;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), valid_seconds - 3600);
    X509_set_pubkey(certificate, key_.get());
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.data()),
                               static_cast<int>(common_name.size()), -1, 0);
    X509_set_issuer_name(certificate, authority ? X509_get_subject_name(authority->certificate_.get()) : subject);
    X509* issuer = authority ? authority->certificate_.get() : certificate;
    Extend(issuer, NID_basic_constraints, authority ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (authority) Extend(issuer, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_sign(certificate, authority ? authority->key_.get() : key_.get(), EVP_sha256());
  }

  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }
  void WriteCertificate(const std::string& path) const {
    Write(path, [&](FILE* file) { PEM_write_X509(file, certificate_.get()); });
  }
  void WriteKey(const std::string& path, const char* passphrase = nullptr) const {
    Write(path, [&](FILE* file) {
      PEM_write_PrivateKey(file, key_.get(), passphrase ? EVP_aes_128_cbc() : nullptr, nullptr, 0, nullptr,
                           const_cast<char*>(passphrase));
    });
  }

 private:
  void Extend(X509* issuer, int what, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate_.get(), nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <typename WriteTo>
  static void Write(const std::string& path, WriteTo write) {
    FILE* file = std::fopen(path.c_str(), "w");
    write(file);
    std::fclose(file);
  }

  TestKey key_;
  TestCertificate certificate_;
};

}  // namespace lockstep::http
