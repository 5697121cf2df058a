#include "renzan/cluster/kubernetes/api/certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Free>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free>;

std::unique_ptr<BIO, Free> Open(const std::string& pem) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Otherwise OpenSSL would ask for one on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

Certificate ReadCertificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(Open(pem).get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();  // else libcurl, in this thread, may take the error for its own
  return certificate;
}

PrivateKey ReadPrivateKey(const std::string& pem) {
  PrivateKey key(PEM_read_bio_PrivateKey(Open(pem).get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

double UnixSeconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<double>(::timegm(&parts));
}

// Throws Error kConfig if they do not belong together; `next` says what to do then.
Certificate CheckPair(const std::string& certificate_pem, const std::string& certificate_where,
                      const std::string& key_pem, const std::string& key_where, const char* next) {
  Certificate certificate = ReadCertificate(certificate_pem);
  if (!certificate)
    Fail(ErrorCode::kConfig, "{}: contains no certificate in PEM format: {}", certificate_where,
         next);
  const PrivateKey key = ReadPrivateKey(key_pem);
  if (!key)
    Fail(ErrorCode::kConfig,
         "{}: contains no private key in PEM format without a passphrase: {}, or remove the "
         "passphrase with `openssl pkey`",
         key_where, next);
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!match)
    Fail(ErrorCode::kConfig, "{}: not the private key of {}: {}", key_where, certificate_where,
         next);
  return certificate;
}

double FirstSecond(const Certificate& certificate) {
  return UnixSeconds(X509_get0_notBefore(certificate.get()));
}
double LastSecond(const Certificate& certificate) {
  return UnixSeconds(X509_get0_notAfter(certificate.get()));
}

}  // namespace

void CheckAuthorities(const std::string& pem, const std::string& where) {
  if (!ReadCertificate(pem))
    Fail(ErrorCode::kConfig,
         "{}: contains no certificate in PEM format: take the cluster's authority again from where "
         "the configuration comes from",
         where);
}

void CheckClientCertificate(const std::string& certificate_pem,
                            const std::string& certificate_where, const std::string& key_pem,
                            const std::string& key_where, double unix_seconds) {
  constexpr const char* kNext = "get new credentials from where the configuration comes from";
  const Certificate certificate =
      CheckPair(certificate_pem, certificate_where, key_pem, key_where, kNext);
  if (const double last = LastSecond(certificate); unix_seconds > last)
    Fail(ErrorCode::kConfig, "{}: the client certificate expired at {}: {}", certificate_where,
         FormatUtc(last), kNext);
  if (const double first = FirstSecond(certificate); unix_seconds < first)
    Fail(ErrorCode::kConfig,
         "{}: the client certificate is not valid before {}: check this machine's clock",
         certificate_where, FormatUtc(first));
}

std::string CheckServerCertificate(const std::string& certificate_pem,
                                   const std::string& certificate_where, const std::string& key_pem,
                                   const std::string& key_where, double unix_seconds) {
  const Certificate certificate = CheckPair(certificate_pem, certificate_where, key_pem, key_where,
                                            "make a new certificate and its key");
  if (const double last = LastSecond(certificate); unix_seconds > last)
    return fmt::format("{}: the certificate expired at {}: make a new one", certificate_where,
                       FormatUtc(last));
  if (const double first = FirstSecond(certificate); unix_seconds < first)
    return fmt::format("{}: the certificate is not valid before {}: check this machine's clock",
                       certificate_where, FormatUtc(first));
  return "";
}

}  // namespace renzan::cluster::kubernetes
