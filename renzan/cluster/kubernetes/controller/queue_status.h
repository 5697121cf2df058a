#pragma once

// The status of queues in a snapshot: their use, whether the resources exist that they are
// guaranteed, and what is wrong with their parents. Pure.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/spec/queue_parents.h"

namespace renzan::cluster::kubernetes {

struct QueueStatus {
  // As fields of status: pending, running, guaranteed, used, borrowed. Never null.
  std::shared_ptr<const nlohmann::json> use;
  Condition guaranteed;                      // whether the resources exist that it is guaranteed
  std::optional<Condition> has_parent = {};  // nothing if its spec names no parent
};

// By name; without queues that have been removed. `faults`: of SetQueues().
std::map<std::string, QueueStatus> StatusesOfQueues(const Snapshot& snapshot,
                                                    const std::vector<spec::ParentFault>& faults);

}  // namespace renzan::cluster::kubernetes
