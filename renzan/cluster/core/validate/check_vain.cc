// Nobody is stopped in vain: with everybody gone who is leaving and all bought nodes there, all
// jobs that wait for their place to be vacated fit at the same time, in room and in quota, beside
// what starts in this cycle.
//
// Whether they fit is searched for (packing.h); a search that grows too long is taken for a yes, so
// that the check never gives a false alarm.

#include <set>
#include <string>
#include <vector>

#include "renzan/cluster/core/place/packing.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

std::string Names(const std::vector<Gang>& gangs) {
  std::string names;
  for (const Gang& gang : gangs) names += fmt::format(" {}", gang.job->id);
  return names;
}

void CheckRoomFor(Cycle& cycle, const std::vector<Gang>& gangs) {
  const Snapshot& snapshot = cycle.snapshot;
  std::vector<Resources> free(snapshot.nodes.size());
  const Held held = HeldAtLast(cycle);
  for (size_t node = 0; node < free.size(); ++node)
    if (snapshot.nodes[node].state == NodeState::kReady ||
        snapshot.nodes[node].state == NodeState::kBooting)
      free[node] = snapshot.nodes[node].capacity - held[node];
  if (PackTogether(snapshot, free, gangs) == Packs::kNo)
    cycle.Report("jobs wait for others to leave and will not fit together even then:{}",
                 Names(gangs));
}

void CheckQuotaFor(Cycle& cycle, const std::vector<Gang>& gangs) {
  const Snapshot& snapshot = cycle.snapshot;
  std::vector<Resources> by_queue(snapshot.queues.size());
  std::vector<int64_t> by_user(snapshot.users.size());
  const auto add = [&](const Job& job, int workers) {
    by_queue[job.queue] += Of(snapshot, job, workers);
    by_user[job.user] += Of(snapshot, job, workers).gpu();
  };
  for (const Job& job : snapshot.jobs) {
    if (cycle.stops.count(job.id) > 0) continue;
    const auto start = cycle.starts.find(job.id);
    const auto resize = cycle.resizes.find(job.id);
    if (start != cycle.starts.end() && !job.grand_challenge)
      add(job, NumWorkers(start->second->placement));
    else if (resize != cycle.resizes.end())
      add(job, NumWorkers(resize->second->target));
    else
      add(job, CountedWorkers(job));
  }
  for (const Gang& gang : gangs)
    if (!gang.job->grand_challenge) add(*gang.job, gang.workers);
  for (const Gang& gang : gangs) {
    if (gang.job->grand_challenge) continue;
    const Queue& queue = snapshot.queues[gang.job->queue];
    const Resources needs = Of(snapshot, *gang.job, gang.workers);
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (needs[kind] > 0 && by_queue[gang.job->queue][kind] > queue.limit[kind])
        cycle.Report("job {} waits for others to leave, and queue {} would exceed its limit",
                     gang.job->id, queue.name);
    const User& user = snapshot.users[gang.job->user];
    if (needs.gpu() > 0 && by_user[gang.job->user] > user.CapAt(snapshot.now))
      cycle.Report("job {} waits for others to leave, and user {} would exceed the cap",
                   gang.job->id, user.name);
  }
}

}  // namespace

void CheckNotInVain(Cycle& cycle) {
  std::set<JobId> preemptors;
  for (const Stop& stop : cycle.decisions.stops) preemptors.insert(stop.on_behalf_of);
  for (const Resize& resize : cycle.decisions.resizes) preemptors.insert(resize.on_behalf_of);
  std::vector<Gang> gangs;  // in the order of the line
  for (const Wait& wait : cycle.decisions.waits)
    if (wait.reason == WaitReason::kPipelined || preemptors.count(wait.job) > 0) {
      const Job& job = *cycle.snapshot.Find(wait.job);
      gangs.push_back({&job, job.min_workers});
    }
  if (gangs.empty()) return;
  CheckRoomFor(cycle, gangs);
  CheckQuotaFor(cycle, gangs);
}

}  // namespace renzan::cluster::check
