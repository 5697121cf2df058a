#pragma once

// Which cluster a verb is for. Pure: looks at the given environment, and whether files exist.

#include <functional>
#include <string>

#include "renzan/cluster/client/paths.h"

namespace renzan::cluster {

// As given on the command line; empty: not given.
struct ClusterFlags {
  std::string cluster, ns, socket;
};

struct ClusterChoice {
  bool kubernetes = false;
  std::string context = {};   // of the kubeconfig file; empty: the current one
  std::string named_by = {};  // "--cluster" or "RENZAN_CLUSTER"; empty: chosen by what exists
};

// Chooses by --cluster, else RENZAN_CLUSTER: "local" is this machine's daemon, "kubernetes" the
// kubeconfig file's current context (or the service account of a pod), any other name a context of
// that file. With neither: the daemon if --socket, RENZAN_SOCKET, RENZAN_STATE_DIR or
// RENZAN_TOKEN_FILE is given or this machine has a daemon's state; else Kubernetes if $KUBECONFIG
// or ~/.kube/config names a file that exists; else the daemon.
//
// Throws Error kUsage for flags that contradict each other.
ClusterChoice ChooseCluster(const ClusterFlags& flags, const client::Environment& environment,
                            const std::function<bool(const std::string& path)>& exists);

}  // namespace renzan::cluster
