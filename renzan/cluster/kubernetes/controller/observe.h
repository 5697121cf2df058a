#pragma once

// A snapshot of a cluster from lists of its objects, as the leading controller has it: for clients
// that explain and simulate. Pure.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/ended_jobs.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"

namespace renzan::cluster::kubernetes {

// Arrays of objects from all namespaces.
struct ClusterObjects {
  const nlohmann::json &nodes, &pools, &queues, &pods;
  std::vector<GangJob> jobs;
};

struct Observed {
  Snapshot snapshot;
  // Jobs that have not ended, as the snapshot has them: a job that no controller has seen yet gets
  // the number that it will probably get.
  std::vector<GangJob> jobs;
  // By name.
  std::map<std::string, KubernetesNode> nodes;
  std::vector<NodePool> pools;
  // What the ended jobs that still exist teach about run times. The leader may know more.
  EndedJobs ended;
};

Observed Observe(ClusterObjects objects, const ClusterPolicy& policy, TimeMs now);

// For a job that is only imagined: keeps it off nodes that the filter does not admit. `snapshot`:
// the observed one, or a changed copy whose additional nodes are like others of their pools.
void KeepOut(const Observed& observed, const NodeFilter& filter, Snapshot& snapshot, Job& job);

}  // namespace renzan::cluster::kubernetes
