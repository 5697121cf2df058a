#include "renzan/cluster/core/place/projected_capacity.h"

#include <algorithm>
#include <map>
#include <set>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/placement.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {

ProjectedCapacity::ProjectedCapacity(const Snapshot& snapshot, const Decisions& decisions)
    : snapshot_(snapshot) {
  for (const Node& node : snapshot.nodes) {
    const bool usable = TakesWork(node.state);
    capacity_.push_back(
        {.labels = &node.labels, .free = usable ? node.capacity : Resources{}, .node = &node});
  }
  std::set<JobId> stopped;
  for (const Stop& stop : decisions.stops) stopped.insert(stop.job);
  std::map<JobId, const Placement*> targets;
  for (const Resize& resize : decisions.resizes) targets[resize.job] = &resize.target;
  for (const Job& job : snapshot.jobs) {
    for (const Placed& placed : job.placement) capacity_[placed.node].needed = true;
    const auto target = targets.find(job.id);
    if (target != targets.end())
      Hold(job, *target->second);
    else if (job.state == JobState::kResizing)
      Hold(job, job.target);
    else if (job.state == JobState::kRunning && stopped.count(job.id) == 0)
      Hold(job, job.placement);
  }
  for (const Start& start : decisions.starts) Hold(*snapshot.Find(start.job), start.placement);
  for (const Reservation& reservation : decisions.reservations)
    for (const Placed& placed : reservation.placement) capacity_[placed.node].needed = true;
}

void ProjectedCapacity::Hold(const Job& job, const Placement& placement) {
  for (const Placed& placed : placement) {
    capacity_[placed.node].free -=
        snapshot_.worker_requests[job.request].per_worker * placed.workers;
    capacity_[placed.node].needed = true;
  }
}

void ProjectedCapacity::Buy(int pool) {
  capacity_.push_back(
      {.labels = &snapshot_.pools[pool].labels, .free = snapshot_.pools[pool].capacity});
}

bool ProjectedCapacity::MayUse(const Room& room, const WorkerRequest& request,
                               const std::string& domain) const {
  if (room.node != nullptr ? !Matches(*room.node, request)
                           : !HasAll(*room.labels, request.required))
    return false;
  return domain.empty() || DomainOf(snapshot_, *room.labels, request.topology_level) == domain;
}

int ProjectedCapacity::Count(const WorkerRequest& request, int workers,
                             const std::string& domain) const {
  int count = 0;
  for (const Room& room : capacity_)
    if (count < workers && MayUse(room, request, domain))
      count += WorkersThatFit(room.free, request.per_worker, workers - count);
  return count;
}

std::vector<std::string> ProjectedCapacity::Domains(const std::string& level) const {
  std::set<std::string> domains;
  for (const Room& room : capacity_) domains.insert(DomainOf(snapshot_, *room.labels, level));
  for (const Pool& pool : snapshot_.pools) domains.insert(DomainOf(snapshot_, pool.labels, level));
  domains.erase("");
  return {domains.begin(), domains.end()};
}

ProjectedCapacity::Fit ProjectedCapacity::PlaceIn(const WorkerRequest& request, int workers,
                                                  const std::string& domain) {
  if (Count(request, workers, domain) < workers) return Fit::kNowhere;
  Fit fit = Fit::kOnNodes;
  for (size_t i = 0; i < capacity_.size() && workers > 0; ++i) {
    Room& room = capacity_[i];
    if (!MayUse(room, request, domain)) continue;
    const int here = WorkersThatFit(room.free, request.per_worker, workers);
    if (here == 0) continue;
    workers -= here;
    room.free -= request.per_worker * here;
    room.needed = true;
    if (i >= snapshot_.nodes.size()) fit = Fit::kOnBought;
  }
  return fit;
}

ProjectedCapacity::Fit ProjectedCapacity::Place(const WorkerRequest& request, int workers) {
  if (NeedsOneHost(request)) {  // equivalent to one large worker
    WorkerRequest all = request;
    all.per_worker = request.per_worker * workers;
    return PlaceIn(all, 1, "");
  }
  if (!request.topology_required) return PlaceIn(request, workers, "");
  for (const std::string& domain : Domains(request.topology_level))
    if (const Fit fit = PlaceIn(request, workers, domain); fit != Fit::kNowhere) return fit;
  return Fit::kNowhere;
}

}  // namespace renzan::cluster
