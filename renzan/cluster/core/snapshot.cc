#include "renzan/cluster/core/snapshot.h"

#include <algorithm>

namespace renzan::cluster {

int64_t User::CapAt(TimeMs now) const {
  int64_t cap = max_gpus;
  for (const Relaxation& relaxation : relaxations)
    if (now < relaxation.until) cap = std::max(cap, relaxation.max_gpus);
  return cap;
}

int NumWorkers(const Placement& placement) {
  int workers = 0;
  for (const Placed& placed : placement) workers += placed.workers;
  return workers;
}

int Snapshot::InternShape(const Shape& shape) {
  const auto at = std::find(shapes.begin(), shapes.end(), shape);
  if (at == shapes.end()) {
    shapes.push_back(shape);
    return static_cast<int>(shapes.size()) - 1;
  }
  return static_cast<int>(at - shapes.begin());
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
