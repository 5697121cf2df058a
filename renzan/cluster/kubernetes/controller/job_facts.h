#pragma once

// The facts of a snapshot that follow from objects alone: for the controller, and for clients that
// look at the cluster as the controller does (observe.h). Not thread-safe.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/controller/pool_facts.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"
#include "renzan/cluster/kubernetes/objects/queue.h"

namespace renzan::cluster::kubernetes {

// The queues that there are: `default`, without quotas, if there is no Queue. Jobs must be
// specified again afterwards.
void SetQueues(const std::map<std::string, QueueSpec>& specs, Snapshot& snapshot);

// What a ClusterPolicy means for users and nodes. Jobs must be specified again afterwards.
void ApplyPolicy(const ClusterPolicy& policy, Inventory& inventory, TimeMs now, Snapshot& snapshot);

// For whoever does not lead: whether nodes can be bought is what the leader has written into the
// NodePool's status.
void PutPool(const NodePool& pool, const PoolMembers& members, int overdue, Inventory& inventory,
             Snapshot& snapshot);

// Of several new jobs, the earlier comes first: creation times have seconds only.
void SortByArrival(std::vector<GangJob>& jobs);

// What follows from a job's specification; Job::held says why it cannot start.
void Specify(const GangJob& object, Inventory& inventory, Snapshot& snapshot, Job& job);

// When another size of a job that has workers applies to them.
enum class SizeApplies {
  kAtOnce,
  kAfterAStop,  // they save their work, and it starts again
  kNextTime,    // work would be lost: when it starts again anyway
};

// `runs`: it has not been told to stop. `saves`: its workers save their work when they are.
SizeApplies WhenSizeApplies(const spec::JobSpec& wanted, int workers, bool runs, bool saves);

// What its status says has happened to it, its reservation included. `job` is pending and is not in
// the snapshot yet.
void Restore(const GangJob& object, Inventory& inventory, TimeMs now, Snapshot& snapshot, Job& job);

// How long it will take. All of it follows from what the object says, so that a new leader comes to
// the same.
void ApplyEstimates(const GangJob& object, Job& job);

}  // namespace renzan::cluster::kubernetes
