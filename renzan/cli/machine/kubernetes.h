#pragma once

// A Kubernetes API server, if this user or this pod has one configured.

#include <functional>
#include <optional>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

struct KubernetesServer {
  std::string configured_in;  // a file, or "this pod"
  std::string url;            // empty where `error` says why
  std::string error;
  std::string ca_file, ca_pem;  // whom to believe; neither: the system's authorities
  bool verify = true;
};

// By $KUBECONFIG (a list of files), ~/.kube/config, or the variables of a pod. `environment` gives
// a variable's value, or null.
std::optional<KubernetesServer> FindKubernetesServer(
    const std::function<const char*(const char*)>& environment);

// Asks for /version, without credentials. Whatever is answered, it can be reached.
Finding FindKubernetes(const std::optional<KubernetesServer>& server);

}  // namespace renzan
