// No preemption is wasted: once all stopping jobs have stopped and all bought nodes are up, all
// pipelined jobs fit at the same time, in resources and in quota, besides the jobs that start in
// this cycle.
//
// Whether they fit is decided by a search (packing.h). A search that takes too long counts as a
// yes, so that the check never raises a false alarm.

#include <set>
#include <string>
#include <vector>

#include "renzan/cluster/core/validate/check.h"
#include "renzan/cluster/core/validate/packing.h"

namespace renzan::cluster::check {
namespace {

std::string Names(const std::vector<Gang>& gangs) {
  std::string names;
  for (const Gang& gang : gangs) names += fmt::format(" {}", gang.job->id);
  return names;
}

void CheckRoomFor(CheckContext& context, const std::vector<Gang>& gangs) {
  const Snapshot& snapshot = context.snapshot;
  std::vector<Resources> free(snapshot.nodes.size());
  const Held held = HeldAfterStops(context);
  for (size_t node = 0; node < free.size(); ++node)
    if (snapshot.nodes[node].state == NodeState::kReady ||
        snapshot.nodes[node].state == NodeState::kBooting)
      free[node] = snapshot.nodes[node].capacity - held[node];
  if (PackTogether(snapshot, free, gangs) == Packs::kNo)
    context.ReportFor(gangs.back().job->id,
                      "jobs are pipelined, but will not fit together once others have stopped:{}",
                      Names(gangs));
}

void CheckQuotaFor(CheckContext& context, const std::vector<Gang>& gangs) {
  const Snapshot& snapshot = context.snapshot;
  std::vector<Resources> by_queue(snapshot.queues.size());
  std::vector<int64_t> by_user(snapshot.users.size());
  const auto add = [&](const Job& job, int workers) {
    if (job.quota_exempt) return;
    by_queue[job.queue] += Of(snapshot, job, workers);
    by_user[job.user] += Of(snapshot, job, workers).gpu();
  };
  for (const Job& job : snapshot.jobs) {
    if (context.stops.count(job.id) > 0) continue;
    const auto start = context.starts.find(job.id);
    const auto resize = context.resizes.find(job.id);
    if (start != context.starts.end())
      add(job, NumWorkers(start->second->placement));
    else if (resize != context.resizes.end())
      add(job, NumWorkers(resize->second->target));
    else
      add(job, CountedWorkers(job));
  }
  for (const Gang& gang : gangs) add(*gang.job, gang.workers);
  for (const Gang& gang : gangs) {
    if (gang.job->quota_exempt) continue;
    const Queue& queue = snapshot.queues[gang.job->queue];
    const Resources needs = Of(snapshot, *gang.job, gang.workers);
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (needs[kind] > 0 && by_queue[gang.job->queue][kind] > queue.limit[kind])
        context.ReportFor(gang.job->id, "job {} is pipelined, but queue {} would exceed its limit",
                          gang.job->id, queue.name);
    const User& user = snapshot.users[gang.job->user];
    if (needs.gpu() > 0 && by_user[gang.job->user] > user.CapAt(snapshot.now))
      context.ReportFor(gang.job->id, "job {} is pipelined, but user {} would exceed the cap",
                        gang.job->id, user.name);
  }
}

}  // namespace

void CheckPreemptorsFit(CheckContext& context) {
  std::set<JobId> preemptors;
  for (const Stop& stop : context.decisions.stops) preemptors.insert(stop.on_behalf_of);
  for (const Resize& resize : context.decisions.resizes) preemptors.insert(resize.on_behalf_of);
  std::vector<Gang> gangs;  // in pending-queue order
  for (const Wait& wait : context.decisions.waits)
    if (wait.reason == WaitReason::kPipelined || preemptors.count(wait.job) > 0) {
      const Job& job = *context.snapshot.Find(wait.job);
      gangs.push_back({&job, job.min_workers});
    }
  if (gangs.empty()) return;
  CheckRoomFor(context, gangs);
  CheckQuotaFor(context, gangs);
}

}  // namespace renzan::cluster::check
