#include "renzan/base/tls/make_certificate.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <functional>
#include <memory>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kBeforeSeconds = 3600;

struct FreeMade {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Made = std::unique_ptr<T, FreeMade>;

struct Identity {
  Made<EVP_PKEY> key;
  Made<X509> certificate;
};

void Extend(X509* certificate, int what, const std::string& value) {
  const Made<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str()));
  CHECK(extension != nullptr);
  CHECK(X509_add_ext(certificate, extension.get(), -1) == 1);
}

Made<EVP_PKEY> NewKey() { return Made<EVP_PKEY>(EVP_EC_gen("P-256")); }

Made<EVP_PKEY> ReadKey(const std::string& pem) {
  const Made<BIO> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CHECK(in != nullptr);
  // Without a passphrase; OpenSSL would ask for one.
  const auto none = [](char*, int, int, void*) { return -1; };
  Made<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, none, nullptr));
  ERR_clear_error();
  if (key == nullptr) Fail(ErrorCode::kData, "this is not a private key in PEM format");
  return key;
}

// Not signed yet.
Identity NewIdentity(Made<EVP_PKEY> key, const std::string& name, double first, double last) {
  Identity made{.key = std::move(key), .certificate = Made<X509>(X509_new())};
  X509* const certificate = made.certificate.get();
  CHECK(made.key != nullptr && certificate != nullptr);
  uint64_t serial = 0;
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  serial >>= 1;  // it is positive
  CHECK(X509_set_version(certificate, 2) == 1);
  CHECK(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1);
  CHECK(ASN1_TIME_set(X509_getm_notBefore(certificate), static_cast<time_t>(first)) != nullptr);
  CHECK(ASN1_TIME_set(X509_getm_notAfter(certificate), static_cast<time_t>(last)) != nullptr);
  CHECK(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.data()),
                                   static_cast<int>(name.size()), -1, 0) == 1);
  CHECK(X509_set_pubkey(certificate, made.key.get()) == 1);
  return made;
}

void Sign(Identity& made, const Identity& by) {
  X509* const certificate = made.certificate.get();
  CHECK(X509_set_issuer_name(certificate, X509_get_subject_name(by.certificate.get())) == 1);
  CHECK(X509_sign(certificate, by.key.get(), EVP_sha256()) > 0);
}

std::string Written(const std::function<int(BIO*)>& write) {
  const Made<BIO> out(BIO_new(BIO_s_mem()));
  CHECK(write(out.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string CertificateText(const Identity& made) {
  return Written([&](BIO* out) { return PEM_write_bio_X509(out, made.certificate.get()); });
}

std::string KeyText(EVP_PKEY* key) {
  return Written([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace

MadeCertificate MakeServerCertificate(const std::string& name, const std::string& alternative,
                                      double unix_seconds, double life_seconds) {
  const double first = unix_seconds - kBeforeSeconds, last = unix_seconds + life_seconds;
  // Authorities that are trusted at the same time need different names. A name has at most 64
  // characters.
  uint32_t number = 0;
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) == 1);
  Identity authority = NewIdentity(
      NewKey(), fmt::format("{} {} {:08x}", name.substr(0, 30), FormatUtc(unix_seconds), number),
      first, last);
  Extend(authority.certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  Extend(authority.certificate.get(), NID_key_usage, "critical,keyCertSign");
  Sign(authority, authority);
  Identity server = NewIdentity(NewKey(), name.substr(0, 64), first, last);
  Extend(server.certificate.get(), NID_subject_alt_name, alternative);
  Extend(server.certificate.get(), NID_ext_key_usage, "serverAuth");
  Sign(server, authority);
  return {.authority = CertificateText(authority),
          .certificate = CertificateText(server),
          .key = KeyText(server.key.get())};
}

std::string MakePrivateKey() { return KeyText(NewKey().get()); }

std::string MakeSelfSignedCertificate(const std::string& key, const std::string& name,
                                      double unix_seconds, double life_seconds) {
  Identity made = NewIdentity(ReadKey(key), name.substr(0, 64), unix_seconds - kBeforeSeconds,
                              unix_seconds + life_seconds);
  Extend(made.certificate.get(), NID_ext_key_usage, "serverAuth");
  Sign(made, made);
  return CertificateText(made);
}

std::string PublicKeyPin(const std::string& key) {
  const Made<EVP_PKEY> made = ReadKey(key);
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(made.get(), &der);
  CHECK(size > 0);
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), hash);
  OPENSSL_free(der);
  unsigned char text[4 * ((sizeof hash + 2) / 3) + 1];
  const int length = EVP_EncodeBlock(text, hash, sizeof hash);
  return "sha256//" + std::string(reinterpret_cast<char*>(text), static_cast<size_t>(length));
}

}  // namespace renzan
