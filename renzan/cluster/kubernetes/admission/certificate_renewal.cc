#include "renzan/cluster/kubernetes/admission/certificate_renewal.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/tls/make_certificate.h"
#include "renzan/cluster/kubernetes/api/base64.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

// As a Secret of the type kubernetes.io/tls has them.
constexpr const char* kCertificateKey = "tls.crt";
constexpr const char* kPrivateKey = "tls.key";
constexpr const char* kAuthorityKey = "ca.crt";
// Of the certificates that are trusted, with those of renewals that were not completed.
constexpr size_t kMostAuthorities = 8;

std::string Decoded(const Json& object, FieldPath path) {
  return DecodeBase64(TextAt(object, path)).value_or("");
}

// "" if there is no webhook.
std::string BundleOf(const Json& configuration) {
  const Json& webhooks = At(configuration, {"webhooks"});
  return webhooks.empty() ? "" : Decoded(webhooks[0], {"clientConfig", "caBundle"});
}

Json VersionOfObject(const Json& object) {
  return {{"resourceVersion", TextAt(object, {"metadata", "resourceVersion"})}};
}

}  // namespace

CertificateRenewal::CertificateRenewal(RenewalOptions options, Api& api, const Clock& clock,
                                       std::function<void(double)> wait)
    : options_(std::move(options)), api_(api), clock_(clock), wait_(std::move(wait)) {}

CertificateRenewal::Held CertificateRenewal::HeldIn(const Json& secret) const {
  Held held{.pair = TlsCredentials{.certificate = Decoded(secret, {"data", kCertificateKey}),
                                   .key = Decoded(secret, {"data", kPrivateKey})},
            .authority = Decoded(secret, {"data", kAuthorityKey})};
  const double now = clock_.UnixSeconds();
  try {
    held.usable = CheckServerCertificate(held.pair.certificate, options_.where(), held.pair.key,
                                         options_.where(), now)
                      .empty();
  } catch (const Error& error) {
    // There is none at first.
    if (!held.pair.certificate.empty()) LogWarning("{}", error.what());
  }
  if (const auto validity = ValidityOf(held.pair.certificate); held.usable && validity)
    held.fresh = validity->last - now > (validity->last - validity->first) / 3;
  return held;
}

std::string CertificateRenewal::Bundle() {
  return BundleOf(api_.Get(ValidatingWebhooks(), "", options_.webhook));
}

// Earlier authorities are kept until they expire: another replica may be about to use one.
void CertificateRenewal::Trust(const std::string& authority, const Held& held) {
  const Json configuration = api_.Get(ValidatingWebhooks(), "", options_.webhook);
  const std::string bundle =
      authority + AuthoritiesInUse(held.authority + BundleOf(configuration), held.pair.certificate,
                                   clock_.UnixSeconds(), kMostAuthorities);
  Json webhooks = At(configuration, {"webhooks"});
  for (Json& webhook : webhooks) webhook["clientConfig"]["caBundle"] = EncodeBase64(bundle);
  api_.MergePatch(ValidatingWebhooks(), "", options_.webhook,
                  {{"metadata", VersionOfObject(configuration)}, {"webhooks", webhooks}});
}

TlsCredentials CertificateRenewal::Renew(const Json& secret, const Held& held) {
  const MadeCertificate made = MakeServerCertificate(options_.webhook, options_.names(),
                                                     clock_.UnixSeconds(), options_.life_seconds);
  Trust(made.authority, held);
  // What is served until then is trusted all the time.
  if (held.usable) {
    wait_(options_.settle_seconds);
    if (!IsIssuedBy(made.certificate, Bundle())) return held.pair;  // somebody has undone it
  }
  api_.MergePatch(Secrets(), options_.ns, options_.secret,
                  {{"metadata", VersionOfObject(secret)},
                   {"data",
                    {{kCertificateKey, EncodeBase64(made.certificate)},
                     {kPrivateKey, EncodeBase64(made.key)},
                     {kAuthorityKey, EncodeBase64(made.authority)}}}});
  LogInfo("{} has another certificate for the webhook, which is renewed in time", options_.where());
  return {.certificate = made.certificate, .key = made.key};
}

TlsCredentials CertificateRenewal::Turn() {
  const Json secret = api_.Get(Secrets(), options_.ns, options_.secret);
  const Held held = HeldIn(secret);
  if (!held.fresh) return Renew(secret, held);
  if (IsIssuedBy(held.pair.certificate, Bundle())) return held.pair;
  // Somebody has made the configuration anew.
  if (!IsIssuedBy(held.pair.certificate, held.authority)) return Renew(secret, held);
  Trust("", held);
  return held.pair;
}

}  // namespace renzan::cluster::kubernetes
