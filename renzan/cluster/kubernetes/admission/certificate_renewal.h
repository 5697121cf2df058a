#pragma once

// The webhook's certificate, kept in a Secret and renewed in time by whichever replica notices
// first; the others take it from there. API servers trust it by the bundle of the
// ValidatingWebhookConfiguration, which trusts the next certificate before anybody serves it, and
// the previous one as long as anybody may.
//
// For one thread.

#include <functional>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/base/tls/tls_credentials.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

struct RenewalOptions {
  std::string ns, secret;  // where it is kept: the Secret exists, at first without data
  std::string webhook = "renzan-admission";  // the configuration, and the Service
  double life_seconds = 90 * 86'400.0;
  // How long API servers may take to see another bundle.
  double settle_seconds = 30;

  std::string where() const { return "Secret " + ns + "/" + secret; }
  // By which clients know the server; by its address whoever forwards a port.
  std::string names() const { return "DNS:" + webhook + "." + ns + ".svc,IP:127.0.0.1"; }
};

class CertificateRenewal {
 public:
  // `wait` is called with seconds to pass. `api` and `clock` must outlive it.
  CertificateRenewal(RenewalOptions options, Api& api, const Clock& clock,
                     std::function<void(double seconds)> wait);

  // What to serve from now on; renewed if a third of its time or less is left. Throws ApiError; if
  // another replica came first (is_conflict()), the next turn has what that one wrote.
  TlsCredentials Turn();

 private:
  struct Held {
    TlsCredentials pair;
    std::string authority;
    bool usable = false;  // a pair that is valid now
    bool fresh = false;   // and for long enough
  };
  Held HeldIn(const Json& secret) const;
  TlsCredentials Renew(const Json& secret, const Held& held);
  // The authorities that API servers trust.
  std::string Bundle();
  // Adds one to them.
  void Trust(const std::string& authority, const Held& held);

  const RenewalOptions options_;
  Api& api_;
  const Clock& clock_;
  const std::function<void(double)> wait_;
};

}  // namespace renzan::cluster::kubernetes
