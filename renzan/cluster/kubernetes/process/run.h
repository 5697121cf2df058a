#pragma once

// The controller as a process: one of several replicas.

#include <optional>
#include <string>

#include "renzan/cluster/kubernetes/admission/admission.h"
#include "renzan/cluster/kubernetes/api/kube_config.h"
#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/process/leader_lease.h"

namespace renzan::cluster::kubernetes {

struct RunOptions {
  AccessRequest access;
  ControllerOptions controller;
  LeaseOptions lease;
  // HOST:PORT for /healthz, /readyz and /metrics; empty: none.
  std::string listen;
  // HOST:PORT for /metrics, which then is not there; empty: none.
  std::string metrics;
  AdmissionOptions admission;
  // A port of the loopback address for /debug/cycles; 0: any free one. Recordings reveal the jobs
  // of all namespaces, so they are for users who may forward ports of the controller's pods.
  std::optional<int> debug_port;
  // The file to which cycles are recorded for replay; empty: in memory only.
  std::string record;
  // Where decisions are logged, one JSON object per line: a file that is appended to, "-" for
  // stdout, or empty for stderr.
  std::string decision_log;
  std::string program;  // as recordings name it
  // Connections for independent requests.
  int connections = 16;
};

// Waits until it leads, then controls the cluster. Returns after SIGTERM or SIGINT; gangs keep
// running. Throws Error kTempFail once it no longer leads: what it knows may be wrong by then, so
// it should be restarted.
//
// For a single-threaded process: it blocks signals and starts threads.
void RunController(const RunOptions& options);

}  // namespace renzan::cluster::kubernetes
