#pragma once

// What a replica has seen of the cluster, whether it leads or not: enough to tell users early what
// the controller would say about a job that can never run. Thread-safe.

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/queue.h"

namespace renzan::cluster::kubernetes {

// Whoever has sent a request, by the API server.
struct Requester {
  std::string user;
  std::vector<std::string> groups;
};

class ClusterView {
 public:
  ClusterView() : inventory_(snapshot_) {}

  // For nodes, pools and queues; other sources are ignored.
  void Take(Source source, const WatchChange& change, TimeMs now);

  void TakePolicy(const WatchChange& change, TimeMs now);

  // Whether Queues and ClusterPolicies have been listed: until then, whoever submits a job cannot
  // be checked, and nobody does it later.
  bool KnowsRights();

  // Why the job's submitter or namespace may not have it, in the controller's words, except for the
  // number of pending jobs. "": they may, or its queue is not known. Until policies have been
  // listed, no namespace is exempt, and only queues limit priorities. `submitter`: null if they
  // have been checked before.
  std::string WhyItIsForbidden(const GangJob& job, const Requester* submitter);
  // What would keep the job waiting on an empty cluster, in the controller's words. "": nothing, or
  // nodes or queues have not been listed yet.
  std::string WhyItCannotRun(const GangJob& job, TimeMs now);

 private:
  void Put(Source source, const Json& object, bool removed, TimeMs now);
  // False if the policy is invalid; it then changes nothing.
  bool PutPolicy(const Json& object, bool removed);

  std::mutex mutex_;
  // Holds only nodes, pools and queues: each job is specified in it temporarily.
  Snapshot snapshot_;
  Inventory inventory_;
  const PodBook no_pods_;
  std::map<std::string, QueueSpec> queues_;
  std::set<Source> synced_;
  bool policies_listed_ = false;
  std::optional<ClusterPolicy> policy_;  // the last valid one; none: not known
};

}  // namespace renzan::cluster::kubernetes
