#include "renzan/cluster/core/explain/feasibility.h"

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {

int64_t Feasibility::Most(int request) {
  const auto [at, is_new] = most_.try_emplace(request, 0);
  if (!is_new) return at->second;
  const Snapshot& snapshot = view_.snapshot();
  for (const NodeSet& tier : view_.Tiers(request, true))
    for (int node = tier.Next(0); node >= 0; node = tier.Next(node + 1))
      at->second += WorkersThatFit(snapshot.nodes[node].capacity,
                                   snapshot.worker_requests[request].per_worker,
                                   std::numeric_limits<int>::max());
  return at->second;
}

bool Feasibility::RulesOut(const Job& job) {
  if (!job.held.empty()) return true;
  const Snapshot& snapshot = view_.snapshot();
  const bool limited =
      !job.quota_exempt && (snapshot.queues[job.queue].limit != Queue::Unlimited() ||
                            snapshot.users[job.user].max_gpus != kUnlimited || IsFixed(job));
  if (!limited && !snapshot.worker_requests[job.request].topology_required &&
      job.min_workers <= Most(job.request))
    return false;
  // Where no quota applies, the answer is the same for all queues and users.
  const Key key(job.request, limited ? job.queue : -1, limited ? job.user : -1, job.checkpoints,
                job.preemptible);
  if (infeasible_.Known(key, job.min_workers)) return true;
  const auto known = feasible_.find(key);
  if (known != feasible_.end() && job.min_workers <= known->second) return false;
  if (WhyInfeasible(snapshot, job).empty()) {
    feasible_[key] = job.min_workers;
    return false;
  }
  infeasible_.Add(key, job.min_workers);
  return true;
}

}  // namespace renzan::cluster
