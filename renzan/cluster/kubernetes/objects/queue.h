#pragma once

// A Queue: its guaranteed quota, the most that it may use, and who may use it.

#include <nlohmann/json_fwd.hpp>

#include "renzan/cluster/core/queue_rights.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"

namespace renzan::cluster::kubernetes {

struct QueueSpec {
  Amounts guaranteed, limit;
  QueueRights rights;
};

// Throws Error kConfig for the first error found.
QueueSpec QueueSpecFrom(const nlohmann::json& spec);

// For a spec that was never valid: nothing is guaranteed, and the rest applies as far as it can be
// read; nobody may use a queue whose members cannot be.
QueueSpec WithoutGuarantee(const nlohmann::json& spec);

// The spec in force, for processes that do not lead: the object's; if that is invalid, the earlier
// one recorded in its status.
QueueSpec HoldingQueueSpec(const nlohmann::json& object);

// The condition that says whether anybody checks who submits a job: only the webhook can.
inline constexpr const char* kMembersChecked = "MembersChecked";
// Whether a Queue's members are users or groups.
bool NeedsSubmitters(const QueueRights& rights);
// Whether the Queue's status says that nobody checks them.
bool AreMembersUnchecked(const nlohmann::json& object);

}  // namespace renzan::cluster::kubernetes
