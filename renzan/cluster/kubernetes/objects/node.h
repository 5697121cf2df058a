#pragma once

// What the controller needs to know of a node.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"
#include "renzan/cluster/kubernetes/objects/node_filter.h"

namespace renzan::cluster::kubernetes {

struct KubernetesNode {
  std::string name;
  int64_t version = 0;  // of the object; 0 if that is no number
  Labels labels;
  Amounts allocatable;
  std::string address;  // by which other nodes reach it
  TimeMs created = 0;
  bool ready = false;
  bool silent = false;  // its kubelet does not report any more
  // By an operator; or it is short of something that new workers would need.
  bool cordoned = false;
  bool draining = false;   // kDrainTaint
  bool returning = false;  // kReturningTaint
  // A taint that says that the machine will be taken away; empty: none.
  std::string leaving;
  std::optional<TimeMs> leaving_since;  // if whoever has set it says so
  // All others that keep away whoever does not tolerate them.
  std::vector<Taint> taints;
};

KubernetesNode NodeFrom(const nlohmann::json& object);

// Taints by which clouds and autoscalers announce that a node goes away.
const std::vector<std::string>& LeavingTaints();

}  // namespace renzan::cluster::kubernetes
