#include "renzan/cluster/kubernetes/admission/admission.h"

#include <optional>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/base/tls/make_certificate.h"
#include "renzan/cluster/kubernetes/admission/certificate_renewal.h"
#include "renzan/cluster/kubernetes/admission/review.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/api/wait.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {

Admission::Admission(AdmissionOptions options, const ApiFactory& make_api, uint64_t seed,
                     const Clock& clock)
    : options_(std::move(options)),
      make_api_(make_api),
      clock_(clock),
      credentials_(FirstCredentials()),
      server_(options_.listen,
              {.post = {{"/validate",
                         [this](const std::string& body) {
                           return AnswerReview(body, cluster_, clock_.UnixMs());
                         }}}},
              "--admission", credentials_) {
  const auto watch = [&](const Kind& kind, std::function<void(WatchChange)> take) {
    watches_.push_back(std::make_unique<Watch>(
        make_api, WatchOptions{.kind = kind, .seed = seed}, std::move(take),
        [](const Error& error) { LogWarning("{}", error.what()); }, clock));
  };
  for (const Source source : {Source::kNodes, Source::kPools, Source::kQueues})
    watch(KindOf(source), [this, source](const WatchChange& change) {
      cluster_.Take(source, change, clock_.UnixMs());
    });
  watch(ClusterPolicies(),
        [this](const WatchChange& change) { cluster_.TakePolicy(change, clock_.UnixMs()); });
  keeping_ = std::jthread([this](const std::stop_token& stop) { KeepCredentials(stop); });
}

// Nobody trusts the certificate with which it starts where a Secret keeps the one in use.
TlsCredentials Admission::FirstCredentials() {
  if (options_.secret.empty()) return ReadFiles();
  const RenewalOptions renewal{.ns = options_.ns, .secret = options_.secret};
  MadeCertificate made = MakeServerCertificate(renewal.webhook, renewal.names(),
                                               clock_.UnixSeconds(), renewal.life_seconds);
  return {.certificate = std::move(made.certificate), .key = std::move(made.key)};
}

TlsCredentials Admission::ReadFiles() {
  TlsCredentials read{.certificate = ReadFile(options_.certificate), .key = ReadFile(options_.key)};
  Judge(read);
  return read;
}

void Admission::Judge(const TlsCredentials& read) {
  const bool in_files = options_.secret.empty();
  const std::string secret = "Secret " + options_.ns + "/" + options_.secret;
  const std::string where = in_files ? "--tls-certificate " + options_.certificate : secret;
  const double now = clock_.UnixSeconds();
  std::string complaint = CheckServerCertificate(
      read.certificate, where, read.key, in_files ? "--tls-key " + options_.key : secret, now);
  if (!complaint.empty())
    complaint += "; until then API servers do not ask this replica";
  else
    complaint = WhyItEndsSoon(read.certificate, where, now);
  if (std::exchange(complaint_, complaint) != complaint && !complaint.empty())
    LogWarning("{}", complaint);
  if (const auto validity = ValidityOf(read.certificate)) options_.on_certificate(validity->last);
}

void Admission::KeepCredentials(const std::stop_token& stop) {
  std::unique_ptr<Api> api;
  std::optional<CertificateRenewal> renewal;
  if (!options_.secret.empty()) {
    api = make_api_(stop);
    renewal.emplace(RenewalOptions{.ns = options_.ns, .secret = options_.secret}, *api, clock_,
                    [&stop](double seconds) { WaitFor(seconds, stop); });
  }
  for (; !stop.stop_requested(); WaitFor(options_.reread_seconds, stop)) {
    try {
      TlsCredentials read = renewal ? renewal->Turn() : ReadFiles();
      if (renewal) Judge(read);
      if (read.certificate == credentials_.certificate && read.key == credentials_.key) continue;
      server_.Use(read);
      credentials_ = std::move(read);
      LogInfo("{} has another certificate", url());
    } catch (const Error& error) {
      // Another replica was faster.
      const auto* const answer = dynamic_cast<const ApiError*>(&error);
      if (stop.stop_requested() || (answer != nullptr && answer->is_conflict())) continue;
      // Perhaps only one of the two files has been replaced so far.
      if (std::exchange(complaint_, error.what()) != error.what()) LogWarning("{}", error.what());
    }
  }
}

}  // namespace renzan::cluster::kubernetes
