#pragma once

// A Kubernetes API server, if this user or this pod has one configured.

#include <functional>
#include <optional>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

struct KubernetesServer {
  std::string configured_in;  // a file, or "this pod"
  std::string url;            // empty if there is an `error`
  std::string error;
  std::string ca_file, ca_pem;  // trusted CAs; neither: the system's
  bool verify = true;
};

// Looks at $KUBECONFIG (a list of files), ~/.kube/config, and the variables of a pod. `environment`
// returns a variable's value, or null.
std::optional<KubernetesServer> FindKubernetesServer(
    const std::function<const char*(const char*)>& environment);

// Requests /version without credentials. Any answer means that the server is reachable.
Finding FindKubernetes(const std::optional<KubernetesServer>& server);

}  // namespace renzan
