#include "renzan/cluster/core/place/avoidance.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

std::set<std::string> NodesThere(const Snapshot& snapshot) {
  std::set<std::string> names;
  for (const Node& node : snapshot.nodes)
    if (node.state != NodeState::kGone) names.insert(node.name);
  return names;
}

}  // namespace

Snapshot InService(Snapshot snapshot) {
  std::vector<int> staying(snapshot.pools.size()), cordoned(snapshot.pools.size());
  for (Node& node : snapshot.nodes) {
    if (TakesWork(node.state)) {
      if (node.pool >= 0) ++staying[node.pool];
      continue;
    }
    if (node.pool >= 0) cordoned[node.pool] += node.state == NodeState::kCordoned;
    node.state = NodeState::kGone;
    node.pool = -1;
  }
  for (size_t pool = 0; pool < staying.size(); ++pool) {
    Pool& facts = snapshot.pools[pool];
    // No other node is bought in place of one that is cordoned.
    const int most = facts.max_nodes - cordoned[pool];
    facts.max_nodes = IsScaled(facts) ? std::max(staying[pool], most) : staying[pool];
    facts.min_nodes = std::min(facts.min_nodes, facts.max_nodes);
  }
  return snapshot;
}

bool HasAvoidance(const Snapshot& snapshot) {
  return std::any_of(snapshot.jobs.begin(), snapshot.jobs.end(),
                     [](const Job& job) { return !job.failed_on.empty(); });
}

Snapshot WithAvoidance(Snapshot snapshot) {
  if (!HasAvoidance(snapshot)) return snapshot;
  const std::set<std::string> there = NodesThere(snapshot);
  Snapshot in_service = InService(snapshot);
  std::map<std::tuple<int, int, int, int, bool, bool, bool>, bool> can_run;
  for (Job& job : snapshot.jobs) {
    if (job.state == JobState::kPending && AvoidsUntil(job) <= snapshot.now) continue;
    WorkerRequest request = snapshot.worker_requests[job.request];
    std::set<std::string> excluded(request.excluded_nodes.begin(), request.excluded_nodes.end());
    std::set_intersection(job.failed_on.begin(), job.failed_on.end(), there.begin(), there.end(),
                          std::inserter(excluded, excluded.end()));
    if (excluded.size() == request.excluded_nodes.size()) continue;
    request.excluded_nodes.assign(excluded.begin(), excluded.end());
    Job avoiding = job;
    avoiding.request = in_service.InternRequest(request);
    const auto [at, is_new] =
        can_run.try_emplace({avoiding.request, job.min_workers, job.queue, job.user,
                             job.checkpoints, job.preemptible, job.state == JobState::kPending},
                            false);
    if (is_new)
      at->second = WhyInfeasible(in_service, avoiding).empty() ||
                   // It runs, although it could start nowhere, because its quota is smaller now:
                   // the nodes on which it failed would not change that.
                   (job.state != JobState::kPending && !WhyInfeasible(in_service, job).empty());
    if (at->second) job.request = snapshot.InternRequest(request);
  }
  return snapshot;
}

}  // namespace renzan::cluster
