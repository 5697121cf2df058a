#pragma once

// Makes certificates for tests.

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>
#include <string>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {

inline constexpr time_t kTestDay = 86'400;

class TestCertificate {
 public:
  // Valid from `first` to `last`, in seconds since 1970. `alternative`: "DNS:a,IP:127.0.0.1".
  // Without an issuer it signs itself, as an authority.
  TestCertificate(const std::string& name, const std::string& alternative,
                  const TestCertificate* issuer, time_t first, time_t last)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    CHECK(key_ != nullptr && certificate_ != nullptr);
    static long serial = 0;
    X509_set_version(certificate_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(certificate_), first);
    ASN1_TIME_set(X509_getm_notAfter(certificate_), last);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate_), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    const TestCertificate& by = issuer == nullptr ? *this : *issuer;
    X509_set_issuer_name(certificate_, X509_get_subject_name(by.certificate_));
    X509_set_pubkey(certificate_, key_);
    if (issuer == nullptr) Extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!alternative.empty()) Extend(NID_subject_alt_name, alternative.c_str());
    CHECK(X509_sign(certificate_, by.key_, EVP_sha256()) > 0);
  }
  ~TestCertificate() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  X509* certificate() const { return certificate_; }
  EVP_PKEY* key() const { return key_; }
  std::string pem() const {
    return Text([this](BIO* out) { return PEM_write_bio_X509(out, certificate_); });
  }
  std::string key_pem() const {
    return Text([this](BIO* out) {
      return PEM_write_bio_PrivateKey(out, key_, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  // With a passphrase.
  std::string locked_key_pem() const {
    return Text([this](BIO* out) {
      return PEM_write_bio_PrivateKey(out, key_, EVP_aes_128_cbc(),
                                      reinterpret_cast<const unsigned char*>("secret"), 6, nullptr,
                                      nullptr);
    });
  }

 private:
  static std::string Text(const std::function<int(BIO*)>& write) {
    BIO* const out = BIO_new(BIO_s_mem());
    CHECK(write(out) == 1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(out);
    return text;
  }
  void Extend(int what, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    CHECK(extension != nullptr);
    X509_add_ext(certificate_, extension, -1);
    X509_EXTENSION_free(extension);
  }

  EVP_PKEY* key_;
  X509* certificate_;
};

}  // namespace renzan::cluster::kubernetes
