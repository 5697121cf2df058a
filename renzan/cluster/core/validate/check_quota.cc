// Limits of queues and caps of users hold after the cycle, whatever they were before: who is over
// (a quota override has expired, a limit was lowered) gets nothing more. Jobs that nobody may
// preempt stay within what their queue is guaranteed. Only a grand challenge is above them.

#include <algorithm>

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

struct Usage {
  Resources before;  // that which stays
  Resources added;   // by this cycle
};

// Adds what each job counts for, after the cycle, to the usage of `owner(job)`.
template <typename Owner>
std::vector<Usage> UsageAfter(const Cycle& cycle, size_t owners, Owner owner) {
  std::vector<Usage> usage(owners);
  for (const Job& job : cycle.snapshot.jobs) {
    if (cycle.stops.count(job.id) > 0 || owner(job) < 0) continue;
    int before = CountedWorkers(job), after = before;
    if (const auto start = cycle.starts.find(job.id); start != cycle.starts.end())
      after = NumWorkers(start->second->placement);
    if (const auto resize = cycle.resizes.find(job.id); resize != cycle.resizes.end())
      after = NumWorkers(resize->second->target);
    if (job.grand_challenge) after = std::min(before, after);  // what it gets more is not counted
    before = std::min(before, after);
    usage[owner(job)].before += Of(cycle.snapshot, job, before);
    usage[owner(job)].added += Of(cycle.snapshot, job, after - before);
  }
  return usage;
}

void CheckGuarantees(Cycle& cycle) {
  const Snapshot& snapshot = cycle.snapshot;
  const std::vector<Usage> usage = UsageAfter(cycle, snapshot.queues.size(), [](const Job& job) {
    return job.preemptible || job.grand_challenge ? -1 : job.queue;
  });
  for (int kind = 0; kind < kMaxResources; ++kind) {
    const bool governed =
        std::any_of(snapshot.queues.begin(), snapshot.queues.end(), [&](const Queue& queue) {
          return queue.guaranteed[kind] > 0 || queue.limit[kind] != kUnlimited;
        });
    for (size_t queue = 0; governed && queue < usage.size(); ++queue) {
      const int64_t after = usage[queue].before[kind] + usage[queue].added[kind];
      const int64_t guaranteed = snapshot.queues[queue].guaranteed[kind];
      if (usage[queue].added[kind] > 0 && after > guaranteed)
        cycle.Report(
            "queue {}: resource {}: jobs that are not preemptible use {} after this cycle, "
            "guaranteed are {}",
            snapshot.queues[queue].name, kind, after, guaranteed);
    }
  }
}

}  // namespace

void CheckQuotas(Cycle& cycle) {
  CheckGuarantees(cycle);
  const Snapshot& snapshot = cycle.snapshot;
  const std::vector<Usage> by_queue =
      UsageAfter(cycle, snapshot.queues.size(), [](const Job& job) { return job.queue; });
  for (size_t queue = 0; queue < by_queue.size(); ++queue) {
    const Resources after = by_queue[queue].before + by_queue[queue].added;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (by_queue[queue].added[kind] > 0 && after[kind] > snapshot.queues[queue].limit[kind])
        cycle.Report("queue {}: resource {}: {} in use after this cycle, the limit is {}",
                     snapshot.queues[queue].name, kind, after[kind],
                     snapshot.queues[queue].limit[kind]);
  }
  const std::vector<Usage> by_user =
      UsageAfter(cycle, snapshot.users.size(), [](const Job& job) { return job.user; });
  for (size_t user = 0; user < by_user.size(); ++user) {
    const int64_t added = by_user[user].added.gpu(), after = by_user[user].before.gpu() + added;
    const int64_t cap = snapshot.users[user].CapAt(snapshot.now);
    if (added > 0 && after > cap)
      cycle.Report("user {}: {} GPUs after this cycle, the cap is {}", snapshot.users[user].name,
                   after, cap);
  }
}

}  // namespace renzan::cluster::check
