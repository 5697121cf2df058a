// Nodes that jobs exclude or avoid. Of avoidance.h it knows only for how long: it counts for itself
// whether others could serve the job.

#include <algorithm>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

bool Names(const std::vector<std::string>& names, const Node& node) {
  return std::find(names.begin(), names.end(), node.name) != names.end();
}

// Other jobs of its user fail there, some of them less than a minute before it was submitted or
// later, the last of them within the hour.
bool ItsUserFailsOn(const Snapshot& observed, const Job& job, const Node& node) {
  for (const FailingNode& failing : observed.users[job.user].failing_on)
    if (failing.node == node.name)
      return job.submitted - failing.since <= kMinute && observed.now - failing.latest < kAvoidMs;
  return false;
}

enum class Other { kWhereItHasNotFailed, kWhereItsUserHasNotFailed };

// Whether nodes that are in service now, other than those on which it (or any job of its user)
// failed, have room for its workers while they are empty. Of a gang in one topology domain that is
// not known.
bool OthersCouldServe(const Snapshot& observed, const Job& job, Other other) {
  const WorkerRequest& request = observed.worker_requests[job.request];
  if (request.topology_required || !job.held.empty()) return false;
  const Resources needs = request.per_worker * job.min_workers;
  if (!needs.FitsIn(observed.queues[job.queue].limit) ||
      needs.gpu() > observed.users[job.user].CapAt(observed.now))
    return false;
  int64_t room = 0;
  for (const Node& node : observed.nodes)
    if (TakesWork(node.state) && !node.spot && HasAll(node.labels, request.required) &&
        !Names(request.excluded_nodes, node) && !Names(job.failed_on, node) &&
        (other == Other::kWhereItHasNotFailed || !ItsUserFailsOn(observed, job, node)))
      room += WorkersThatFit(node.capacity, request.per_worker, job.min_workers);
  return room >= job.min_workers;
}

void CheckPlacement(const Snapshot& observed, const Job& job, const Placement& placement,
                    CheckContext& context) {
  const std::vector<std::string>& excluded = observed.worker_requests[job.request].excluded_nodes;
  const bool avoids = job.state != JobState::kPending || AvoidsUntil(job) > observed.now;
  const std::map<int, int> had = WorkersByNode(job.placement);
  for (const Placed& placed : placement) {
    const Node& node = observed.nodes[placed.node];
    const auto before = had.find(placed.node);
    if (before != had.end() && placed.workers <= before->second) continue;
    if (Names(excluded, node))
      context.ReportFor(job.id, "job {} gets workers on node {}, which it excludes", job.id,
                        node.name);
    else if (avoids && Names(job.failed_on, node) &&
             OthersCouldServe(observed, job, Other::kWhereItHasNotFailed))
      context.ReportFor(
          job.id, "job {} gets workers on node {}, where it failed, although others could serve it",
          job.id, node.name);
    else if (ItsUserFailsOn(observed, job, node) &&
             OthersCouldServe(observed, job, Other::kWhereItsUserHasNotFailed))
      context.ReportFor(job.id,
                        "job {} gets workers on node {}, where its user's jobs fail, although "
                        "others could serve it",
                        job.id, node.name);
  }
}

}  // namespace

void CheckAvoidance(const Snapshot& observed, CheckContext& context) {
  for (const Start& start : context.decisions.starts)
    CheckPlacement(observed, *observed.Find(start.job), start.placement, context);
  for (const Resize& resize : context.decisions.resizes)
    CheckPlacement(observed, *observed.Find(resize.job), resize.target, context);
}

}  // namespace renzan::cluster::check
