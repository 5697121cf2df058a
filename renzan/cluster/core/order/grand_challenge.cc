#include "renzan/cluster/core/order/grand_challenge.h"

#include <algorithm>
#include <map>
#include <optional>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

// As many workers as fit on these nodes, at most max_workers; none if fewer than min_workers fit.
std::optional<Placement> PlaceOn(const Snapshot& snapshot, const std::vector<Resources>& free,
                                 const std::vector<int>& nodes, const Job& job) {
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  Placement placement;
  int left = job.max_workers;
  for (const int node : nodes) {
    const int workers = WorkersThatFit(free[node], request.per_worker, left);
    if (workers > 0) placement.push_back({node, workers});
    left -= workers;
  }
  if (job.max_workers - left < job.min_workers) return std::nullopt;
  return placement;
}

// The largest gang that fits; the first domain wins ties.
Placement Place(const Snapshot& snapshot, const std::vector<Resources>& free, const Job& job) {
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  std::vector<int> domain_of(snapshot.nodes.size());
  if (request.topology_required) domain_of = DomainsAt(snapshot, request.topology_level);
  std::map<int, std::vector<int>> domains;
  for (size_t node = 0; node < snapshot.nodes.size(); ++node)
    if (snapshot.nodes[node].state == NodeState::kReady && domain_of[node] >= 0 &&
        Matches(snapshot.nodes[node], request))
      domains[domain_of[node]].push_back(static_cast<int>(node));
  Placement best;
  for (const auto& [domain, nodes] : domains)
    if (const std::optional<Placement> found = PlaceOn(snapshot, free, nodes, job))
      if (NumWorkers(*found) > NumWorkers(best)) best = *found;
  return best;
}

// GPU-milliseconds that a stop would lose: the work since the last checkpoint, or all of it.
double LossIfStopped(const Snapshot& snapshot, const Job& job) {
  const double gpus = static_cast<double>(snapshot.worker_requests[job.request].per_worker.gpu()) *
                      NumWorkers(job.placement);
  if (SavesWhenStopped(job)) return gpus * static_cast<double>(job.restart_cost_ms);
  const TimeMs saved =
      job.checkpoints ? std::max(job.started, job.last_checkpoint.value_or(0)) : job.started;
  return gpus * static_cast<double>(snapshot.now - saved);
}

}  // namespace

GrandChallengePlan PlanGrandChallenge(const Snapshot& snapshot, const Job& job) {
  GrandChallengePlan plan;
  plan.earliest_start = std::max(snapshot.now, job.eligible_at);
  std::vector<Resources> free;
  for (const Node& node : snapshot.nodes) free.push_back(node.capacity);
  double gpu_ms = 0;
  for (const Job& other : snapshot.jobs) {
    if (other.id == job.id || other.state == JobState::kPending) continue;
    const bool goes = other.preemptible || other.state == JobState::kStopping;
    if (!goes) {
      const Placement& stays = other.state == JobState::kResizing ? other.target : other.placement;
      for (const Placed& placed : stays)
        free[placed.node] -= snapshot.worker_requests[other.request].per_worker * placed.workers;
      continue;
    }
    plan.earliest_start = std::max(plan.earliest_start, snapshot.now + other.grace_ms);
    if (other.state == JobState::kStopping) continue;
    plan.stops.push_back(other.id);
    if (!SavesWhenStopped(other))
      plan.loses_work.push_back(other.id);
    else
      plan.bytes_to_save += other.state_bytes;
    gpu_ms += LossIfStopped(snapshot, other);
  }
  plan.gpu_seconds_lost = gpu_ms / 1000;
  plan.placement = Place(snapshot, free, job);
  return plan;
}

}  // namespace renzan::cluster
