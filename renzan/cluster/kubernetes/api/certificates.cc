#include "renzan/cluster/kubernetes/api/certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr double kDaySeconds = 86'400;
// Time for somebody to do something about it, but not all the time for a short-lived certificate.
constexpr double kMostWarningSeconds = 14 * kDaySeconds;
constexpr double kWarningPart = 0.2;

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

std::vector<Certificate> ReadCertificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const auto in = Open(pem);
  while (X509* const next = PEM_read_bio_X509(in.get(), nullptr, &NoPassphrase, nullptr))
    certificates.emplace_back(next);
  ERR_clear_error();  // that of the end
  return certificates;
}

bool HasIssued(const Certificate& authority, const Certificate& certificate) {
  const bool has = X509_check_issued(authority.get(), certificate.get()) == X509_V_OK &&
                   X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return has;
}

std::string PemOf(const Certificate& certificate) {
  const std::unique_ptr<BIO, Free> out(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(out.get(), certificate.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
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

std::optional<Validity> ValidityOf(const std::string& pem) {
  const Certificate certificate = ReadCertificate(pem);
  if (!certificate) return std::nullopt;
  return Validity{FirstSecond(certificate), LastSecond(certificate)};
}

std::string WhyItEndsSoon(const std::string& pem, const std::string& where, double unix_seconds) {
  const auto validity = ValidityOf(pem);
  if (!validity || unix_seconds > validity->last) return "";
  const double warning =
      std::min(kMostWarningSeconds, (validity->last - validity->first) * kWarningPart);
  const double left = validity->last - unix_seconds;
  if (left > warning) return "";
  return fmt::format("{}: the certificate expires at {}, within {}: renew it", where,
                     FormatUtc(validity->last),
                     Counted(static_cast<int64_t>(std::ceil(left / kDaySeconds)), "day"));
}

std::string AuthoritiesInUse(const std::string& authorities_pem, const std::string& certificate_pem,
                             double unix_seconds, size_t most) {
  const Certificate certificate = ReadCertificate(certificate_pem);
  std::string kept;
  for (const Certificate& each : ReadCertificates(authorities_pem)) {
    if (LastSecond(each) < unix_seconds) continue;
    if (most == 0 && !(certificate && HasIssued(each, certificate))) continue;
    const std::string pem = PemOf(each);
    if (kept.find(pem) != std::string::npos) continue;
    most -= most > 0 ? 1 : 0;
    kept += pem;
  }
  return kept;
}

bool IsIssuedBy(const std::string& certificate_pem, const std::string& authorities_pem) {
  const Certificate certificate = ReadCertificate(certificate_pem);
  const std::vector<Certificate> authorities = ReadCertificates(authorities_pem);
  return certificate &&
         std::any_of(authorities.begin(), authorities.end(),
                     [&](const Certificate& each) { return HasIssued(each, certificate); });
}

}  // namespace renzan::cluster::kubernetes
