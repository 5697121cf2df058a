#pragma once

// A Queue: its guaranteed quota, and the most that it may use.

#include <nlohmann/json_fwd.hpp>

#include "renzan/cluster/kubernetes/objects/amounts.h"

namespace renzan::cluster::kubernetes {

struct QueueSpec {
  Amounts guaranteed, limit;
  bool not_preemptible = true;  // it takes jobs with preemptible: false
};

// Throws Error kConfig for the first error found.
QueueSpec QueueSpecFrom(const nlohmann::json& spec);

// For a spec that was never valid: nothing is guaranteed, and the rest applies as far as it can be
// read.
QueueSpec WithoutGuarantee(const nlohmann::json& spec);

// The spec in force, for processes that do not lead: the object's; if that is invalid, the earlier
// one recorded in its status.
QueueSpec HoldingQueueSpec(const nlohmann::json& object);

}  // namespace renzan::cluster::kubernetes
