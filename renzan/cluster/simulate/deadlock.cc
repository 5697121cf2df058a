#include "renzan/cluster/simulate/deadlock.h"

#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

std::vector<Resources> Capacities(const Snapshot& snapshot) {
  std::vector<Resources> capacities;
  for (const Node& node : snapshot.nodes) capacities.push_back(node.capacity);
  return capacities;
}

bool CanHold(Room room, const WorkerRequest& request, int workers) {
  return room.Place(request, workers, workers).has_value();
}

}  // namespace

std::vector<JobId> FindDeadlocked(const Snapshot& snapshot,
                                  const std::map<JobId, Placement>& held) {
  if (held.empty()) return {};
  const Room empty(snapshot, Capacities(snapshot));
  Room room = empty;
  std::vector<JobId> waiting;
  for (const auto& [id, placement] : held) {
    const Job& job = *snapshot.Find(id);
    const WorkerRequest& request = snapshot.worker_requests[job.request];
    for (const Placed& placed : placement)
      room.Take(placed.node, request.per_worker * placed.workers);
    if (CanHold(empty, request, job.max_workers)) waiting.push_back(id);
  }
  const auto completes = [&](JobId id) {
    const Job& job = *snapshot.Find(id);
    const WorkerRequest& request = snapshot.worker_requests[job.request];
    const Placement& placement = held.at(id);
    if (!CanHold(room, request, job.max_workers - NumWorkers(placement))) return false;
    for (const Placed& placed : placement)
      room.Give(placed.node, request.per_worker * placed.workers);
    return true;
  };
  while (std::erase_if(waiting, completes) > 0) {
  }
  return waiting;
}

}  // namespace renzan::cluster::simulate
