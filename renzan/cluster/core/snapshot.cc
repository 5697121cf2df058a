#include "renzan/cluster/core/snapshot.h"

#include <algorithm>

namespace renzan::cluster {

int64_t User::CapAt(TimeMs now) const {
  int64_t cap = max_gpus;
  for (const QuotaOverride& quota_override : quota_overrides)
    if (now < quota_override.until) cap = std::max(cap, quota_override.max_gpus);
  return cap;
}

int NumWorkers(const Placement& placement) {
  int workers = 0;
  for (const Placed& placed : placement) workers += placed.workers;
  return workers;
}

bool IsOn(const Placement& placement, int node) {
  return std::any_of(placement.begin(), placement.end(),
                     [&](const Placed& placed) { return placed.node == node; });
}

int64_t AttainedWorkerMs(const Job& job, TimeMs now) {
  const TimeMs running =
      job.state == JobState::kPending ? 0 : std::max<TimeMs>(0, now - job.started);
  return job.attained_worker_ms + running * NumWorkers(job.placement);
}

int Snapshot::InternRequest(const WorkerRequest& request) {
  const auto at = std::find(worker_requests.begin(), worker_requests.end(), request);
  if (at == worker_requests.end()) {
    worker_requests.push_back(request);
    return static_cast<int>(worker_requests.size()) - 1;
  }
  return static_cast<int>(at - worker_requests.begin());
}

int Snapshot::InternUser(const std::string& name) {
  for (size_t user = 0; user < users.size(); ++user)
    if (users[user].name == name) return static_cast<int>(user);
  users.push_back({.name = name});
  return static_cast<int>(users.size()) - 1;
}

const Job* Snapshot::Find(JobId id) const {
  const auto at = std::lower_bound(jobs.begin(), jobs.end(), id,
                                   [](const Job& job, JobId wanted) { return job.id < wanted; });
  return at == jobs.end() || at->id != id ? nullptr : &*at;
}

Job* Snapshot::Find(JobId id) {
  return const_cast<Job*>(static_cast<const Snapshot*>(this)->Find(id));
}

}  // namespace renzan::cluster
