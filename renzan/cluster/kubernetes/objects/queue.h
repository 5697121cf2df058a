#pragma once

// A Queue: its guaranteed quota, the most that it may use, its parent, who may use it, and whether
// namespaces get fair shares of it.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "renzan/cluster/core/queue_rights.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"
#include "renzan/cluster/spec/queue_rights.h"

namespace renzan::cluster::kubernetes {

struct QueueSpec {
  Amounts guaranteed, limit;
  std::string parent;  // another Queue; empty: none
  QueueRights rights;
  std::optional<FairShare> fair_share;  // without anything used
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
// Since when somebody checks them, as the Queue's status says; kNever: nobody does; none: it does
// not say.
std::optional<TimeMs> MembersCheckedSince(const nlohmann::json& status);
// Whether the webhook has checked who put a job into the queue at `entered`, as the Queue's status
// says, whose condition is True since the first moment in which the webhook was there and the Queue
// had such members. Jobs of the seconds around that moment do not count as checked: clocks differ,
// and a replica may have seen the Queue later.
spec::Submitter::Checked WasSubmitterChecked(const nlohmann::json& status, TimeMs entered);

}  // namespace renzan::cluster::kubernetes
