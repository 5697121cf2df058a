#pragma once

// What an operator does to a Kubernetes cluster, as far as it concerns Renzan, and who controls it.

#include <string>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster {

// Whether anything new may start on the node, by whichever scheduler.
void CordonNode(kubernetes::Api& api, const std::string& node, bool cordoned);

struct CapOverride {
  std::string ns;
  int64_t max_gpus = 0;
  TimeMs until = 0;
};

// Adds it to the ClusterPolicy "default" and removes those that are over. Throws Error kUsage if
// the namespace has no cap, or one that is not lower.
void OverrideCap(kubernetes::Api& api, const CapOverride& cap_override, TimeMs now);

// The replica of the controller that leads; null if there is none, or that is not ours to know.
Document LeaderOf(kubernetes::Api& api);

}  // namespace renzan::cluster
