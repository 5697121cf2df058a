#pragma once

// The status of queues in a snapshot: their use, and whether the resources exist that they are
// guaranteed. Pure.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"

namespace renzan::cluster::kubernetes {

struct QueueStatus {
  // As fields of status: pending, running, guaranteed, used, borrowed. Never null.
  std::shared_ptr<const nlohmann::json> use;
  Condition guaranteed;  // whether the resources exist that it is guaranteed
};

// By name; without queues that have been removed.
std::map<std::string, QueueStatus> StatusesOfQueues(const Snapshot& snapshot);

}  // namespace renzan::cluster::kubernetes
