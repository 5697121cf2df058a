#pragma once

// A validating webhook, served by every replica: API servers ask it about GangJobs before they keep
// them (job_check.h). It runs in threads of its own; the controller never waits for it.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/process/path_server.h"

namespace renzan::cluster::kubernetes {

struct AdmissionOptions {
  std::string listen;  // HOST:PORT; empty: none
  // Where its certificate comes from: files in PEM format, or a Secret of this namespace in which
  // the replicas renew it.
  std::string certificate, key;
  std::string secret, ns;
  double reread_seconds = 10;  // files and Secrets are replaced while in use
  // Called, from another thread, too, with the second in which the certificate in use expires.
  std::function<void(double unix_seconds)> on_certificate = [](double) {};
};

class Admission {
 public:
  // `seed`: different in each process. `clock` outlives it. Throws Error kUsage, kConfig,
  // kCantCreate or kOsError, or as ReadFile() does.
  Admission(AdmissionOptions options, const ApiFactory& make_api, uint64_t seed,
            const Clock& clock);

  // Where reviews are posted to: "https://127.0.0.1:9443/validate".
  std::string url() const { return server_.url() + "/validate"; }

 private:
  TlsCredentials FirstCredentials();
  TlsCredentials ReadFiles();
  // Says what is wrong with them, and when they expire.
  void Judge(const TlsCredentials& read);
  void KeepCredentials(const std::stop_token& stop);

  const AdmissionOptions options_;
  const ApiFactory make_api_;
  const Clock& clock_;
  std::string complaint_;  // the last complaint about the certificate
  ClusterView cluster_;
  TlsCredentials credentials_;
  PathServer server_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::jthread keeping_;
};

}  // namespace renzan::cluster::kubernetes
