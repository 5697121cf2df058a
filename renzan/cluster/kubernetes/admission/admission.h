#pragma once

// A validating webhook, served by every replica: API servers ask it about GangJobs before they keep
// them (job_check.h). It runs in threads of its own; the controller never waits for it.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/process/http_server.h"

namespace renzan::cluster::kubernetes {

struct AdmissionOptions {
  std::string listen;            // HOST:PORT; empty: none
  std::string certificate, key;  // files in PEM format
  double reread_seconds = 10;    // a Secret's files are replaced while in use
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
  TlsCredentials ReadCredentials();
  void KeepCredentials(const std::stop_token& stop);

  const AdmissionOptions options_;
  const Clock& clock_;
  std::string complaint_;  // the last complaint about the files
  ClusterView cluster_;
  TlsCredentials credentials_;
  HttpServer server_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::jthread keeping_;
};

}  // namespace renzan::cluster::kubernetes
