#pragma once

// A Kubernetes cluster on which Renzan's controller runs. The API server decides what the caller
// may do; nothing here needs more rights than the request itself.
//
// Jobs are GangJobs, users are namespaces. Questions about the whole cluster (nodes, status, what
// would start) need the right to list nodes, queues, pods and GangJobs of all namespaces.

#include <memory>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/client/paths.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/pod_logs.h"

namespace renzan::cluster {

struct KubernetesTarget {
  std::string server;  // for people
  std::string ns;      // for jobs that do not name theirs
  // Looks only at jobs of `ns`; otherwise at those of all namespaces, if that is allowed.
  bool only_namespace = false;
};

// `api` and `logs` are of the same server. `clock` must outlive the result.
std::unique_ptr<Backend> MakeKubernetesBackend(std::unique_ptr<kubernetes::Api> api,
                                               std::unique_ptr<kubernetes::PodLogs> logs,
                                               KubernetesTarget target,
                                               const Clock& clock = SystemClock());

// Finds the cluster as FindAccess() does. Empty `context` or `ns`: the kubeconfig file's. Throws as
// FindAccess().
std::unique_ptr<Backend> MakeKubernetesBackend(const std::string& context, const std::string& ns,
                                               const client::Environment& environment);

}  // namespace renzan::cluster
