#pragma once

// The facts of a snapshot that follow from objects alone: for the controller, and for clients that
// see the cluster as the controller does (observe.h). Not thread-safe.

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
#include "renzan/cluster/spec/queue_parents.h"

namespace renzan::cluster::kubernetes {

// Sets the queues: `default`, without quotas, if there is no Queue. Jobs must be specified again
// afterwards. Returns what is wrong with their parents: such a queue has none.
std::vector<spec::ParentFault> SetQueues(const std::map<std::string, QueueSpec>& specs,
                                         Snapshot& snapshot);

// Applies a ClusterPolicy to users and nodes. Jobs must be specified again afterwards.
void ApplyPolicy(const ClusterPolicy& policy, Inventory& inventory, TimeMs now, Snapshot& snapshot);

// For processes that do not lead: whether nodes can be bought is what the leader has written into
// the NodePool's status.
void PutPool(const NodePool& pool, const PoolMembers& members, int overdue, Inventory& inventory,
             Snapshot& snapshot);

// Of several new jobs, the earlier comes first: creation times have a resolution of seconds.
void SortByArrival(std::vector<GangJob>& jobs);

// The queue that the job names; null if there is none.
const Queue* QueueOf(const GangJob& object, const Snapshot& snapshot);

// Why the job's queue (null: it is not known) or the ClusterPolicy does not let it start, in one
// line; empty: they do. `pending_jobs`: as for WhyForbidden().
std::string WhyItMayNotStart(const GangJob& object, const Queue* queue, const Snapshot& snapshot,
                             const NamespaceLimits& limits, const spec::Submitter& submitter,
                             int64_t pending_jobs);

// Sets or ends Job::held as spec.held says, unless the job is held for another reason.
void ApplyHold(const GangJob& object, Job& job);

// Sets what follows from a job's specification; Job::held says why it cannot start.
void Specify(const GangJob& object, Inventory& inventory, Snapshot& snapshot, Job& job);

// When a new size of a job that has workers applies to them.
enum class SizeApplies {
  kAtOnce,
  kAfterAStop,  // the workers save their work, and the job starts again
  kNextTime,    // when the job starts again anyway, because work would be lost
};

// `runs`: it has not been told to stop. `saves`: its workers save their work when told to stop.
SizeApplies WhenSizeApplies(const spec::JobSpec& wanted, int workers, bool runs, bool saves);

// Restores what its status says has happened to it, including its reservation. `job` is pending and
// not in the snapshot yet.
void Restore(const GangJob& object, Inventory& inventory, TimeMs now, Snapshot& snapshot, Job& job);

// Sets the estimates of how long it will take. All follow from the object, so that a new leader
// arrives at the same ones.
void ApplyEstimates(const GangJob& object, Job& job);

}  // namespace renzan::cluster::kubernetes
