#include "renzan/cluster/kubernetes/admission/admission.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/admission/review.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/api/wait.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {

Admission::Admission(AdmissionOptions options, const ApiFactory& make_api, uint64_t seed,
                     const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      credentials_(ReadCredentials()),
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

TlsCredentials Admission::ReadCredentials() {
  TlsCredentials read{.certificate = ReadFile(options_.certificate), .key = ReadFile(options_.key)};
  const std::string distrusted =
      CheckServerCertificate(read.certificate, "--tls-certificate " + options_.certificate,
                             read.key, "--tls-key " + options_.key, clock_.UnixSeconds());
  if (std::exchange(complaint_, distrusted) != distrusted && !distrusted.empty())
    LogWarning("{}; until then API servers do not ask this replica", distrusted);
  return read;
}

void Admission::KeepCredentials(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    WaitFor(options_.reread_seconds, stop);
    try {
      TlsCredentials read = ReadCredentials();
      if (read.certificate == credentials_.certificate && read.key == credentials_.key) continue;
      server_.Use(read);
      credentials_ = std::move(read);
      LogInfo("{} has another certificate", url());
    } catch (const Error& error) {
      // Perhaps only one of the two files has been replaced so far.
      if (std::exchange(complaint_, error.what()) != error.what()) LogWarning("{}", error.what());
    }
  }
}

}  // namespace renzan::cluster::kubernetes
