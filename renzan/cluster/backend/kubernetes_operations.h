#pragma once

// An operator's actions on a Kubernetes cluster, as far as they concern Renzan, and who leads its
// controllers.

#include <string>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster {

// Sets whether any scheduler may start new pods on the node.
void CordonNode(kubernetes::Api& api, const std::string& node, bool cordoned);

struct CapOverride {
  std::string ns;
  int64_t max_gpus = 0;
  TimeMs until = 0;
};

// Adds the override to the ClusterPolicy "default" and removes expired ones. Throws Error kUsage if
// the namespace has no cap, or one that is not lower.
void OverrideCap(kubernetes::Api& api, const CapOverride& cap_override, TimeMs now);

// The leading replica of the controller; null if there is none, or the caller may not know.
Document LeaderOf(kubernetes::Api& api);

}  // namespace renzan::cluster
