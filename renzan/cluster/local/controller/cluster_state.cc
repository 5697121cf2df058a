#include "renzan/cluster/local/controller/cluster_state.h"

#include <utility>
#include <vector>

namespace renzan::cluster::local {
namespace {

// Scheduling takes time for each request. Unused ones are dropped only once there are many, so that
// the next job often finds its request interned.
void DropUnusedRequests(Snapshot& snapshot) {
  if (snapshot.worker_requests.size() < 2 * snapshot.jobs.size() + 100) return;
  std::vector<WorkerRequest> used;
  std::map<int, int> new_index;
  for (Job& job : snapshot.jobs) {
    const auto [at, is_new] = new_index.insert({job.request, static_cast<int>(used.size())});
    if (is_new) used.push_back(snapshot.worker_requests[job.request]);
    job.request = at->second;
  }
  snapshot.worker_requests = std::move(used);
}

}  // namespace

TimeMs NowMs(const Clock& clock) { return clock.UnixMs(); }

void ClusterState::RemoveJob(JobId job) {
  live.erase(job);
  watched.erase(job);
  std::erase_if(snapshot.jobs, [&](const Job& each) { return each.id == job; });
  DropUnusedRequests(snapshot);
}

}  // namespace renzan::cluster::local
