#pragma once

// What there is to say of queues in a snapshot: their use, and whether what they are guaranteed
// exists. Pure.

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
  Condition guaranteed;  // whether what it is guaranteed exists
};

// By name; without queues that have been removed.
std::map<std::string, QueueStatus> StatusesOfQueues(const Snapshot& snapshot);

}  // namespace renzan::cluster::kubernetes
