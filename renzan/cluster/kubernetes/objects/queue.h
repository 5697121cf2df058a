#pragma once

// A Queue: what it is guaranteed, and the most that it may use.

#include <nlohmann/json_fwd.hpp>

#include "renzan/cluster/kubernetes/objects/amounts.h"

namespace renzan::cluster::kubernetes {

struct QueueSpec {
  Amounts guaranteed, limit;
};

// Throws Error kConfig with the first thing that is wrong.
QueueSpec QueueSpecFrom(const nlohmann::json& spec);

// Of a spec that was never right: nothing is guaranteed, and its limit holds as far as it can be
// read.
QueueSpec WithoutGuarantee(const nlohmann::json& spec);

// What holds, for whoever does not lead: what the object says; if that cannot be used, what held
// before, as its status says.
QueueSpec HoldingQueueSpec(const nlohmann::json& object);

}  // namespace renzan::cluster::kubernetes
