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
  int64_t version = 0;  // the object's version; 0 if it is not a number
  Labels labels;
  Amounts allocatable;
  std::string address;  // the address by which other nodes reach it
  TimeMs created = 0;
  bool ready = false;
  bool silent = false;  // its kubelet no longer reports
  // Cordoned by an operator, or short of something that new workers would need.
  bool cordoned = false;
  bool draining = false;   // kDrainTaint
  bool returning = false;  // kReturningTaint
  // The taint that announces that the machine will be taken away; empty: none.
  std::string leaving;
  std::optional<TimeMs> leaving_since;  // if whoever set it recorded the time
  // All other taints that keep away pods that do not tolerate them.
  std::vector<Taint> taints;
};

KubernetesNode NodeFrom(const nlohmann::json& object);

// Taints by which clouds and autoscalers announce that a node goes away.
const std::vector<std::string>& LeavingTaints();

}  // namespace renzan::cluster::kubernetes
