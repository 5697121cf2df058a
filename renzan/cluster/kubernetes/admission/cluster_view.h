#pragma once

// What a replica has seen of the cluster, whether it leads or not: enough to tell users early what
// the controller would say of a job that can never run. Thread-safe.

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/queue.h"

namespace renzan::cluster::kubernetes {

class ClusterView {
 public:
  ClusterView() : inventory_(snapshot_) {}

  // Of nodes, pools and queues; others are not needed.
  void Take(Source source, const WatchChange& change, TimeMs now);

  void TakePolicy(const WatchChange& change, TimeMs now);

  // Why its namespace may not have the job, as the controller says it, but for the number of jobs
  // that wait. "": it may, or policies have not been listed yet.
  std::string WhyItIsForbidden(const GangJob& job);
  // What would keep the job waiting on the empty cluster, as the controller says it. "": nothing,
  // or nodes or queues have not been listed yet.
  std::string WhyItCannotRun(const GangJob& job, TimeMs now);

 private:
  void Put(Source source, const Json& object, bool removed, TimeMs now);
  // False: it is wrong, and changes nothing.
  bool PutPolicy(const Json& object, bool removed);

  std::mutex mutex_;
  // Nodes, pools and queues only: jobs are specified in it one at a time.
  Snapshot snapshot_;
  Inventory inventory_;
  const PodBook no_pods_;
  std::map<std::string, QueueSpec> queues_;
  std::set<Source> synced_;
  std::optional<ClusterPolicy> policy_;  // the last valid one; none: not known
};

}  // namespace renzan::cluster::kubernetes
