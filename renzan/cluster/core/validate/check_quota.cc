// Ceilings of queues and caps of users hold after the pass, whatever they were before: who is over
// (a relaxation has expired, a ceiling was lowered) gets nothing more. Jobs that nobody may preempt
// stay within what their queue is guaranteed. Only a grand challenge is above them.

#include <algorithm>

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

struct Usage {
  Resources before;  // that which stays
  Resources added;   // by this pass
};

// Adds what each job counts for, after the pass, to the usage of `owner(job)`.
template <typename Owner>
std::vector<Usage> UsageAfter(const Pass& pass, size_t owners, Owner owner) {
  std::vector<Usage> usage(owners);
  for (const Job& job : pass.snapshot.jobs) {
    if (pass.stops.count(job.id) > 0 || owner(job) < 0) continue;
    int before = CountedWorkers(job), after = before;
    if (const auto start = pass.starts.find(job.id); start != pass.starts.end())
      after = NumWorkers(start->second->placement);
    if (const auto resize = pass.resizes.find(job.id); resize != pass.resizes.end())
      after = NumWorkers(resize->second->target);
    if (job.grand_challenge) after = std::min(before, after);  // what it gets more is not counted
    before = std::min(before, after);
    usage[owner(job)].before += Of(pass.snapshot, job, before);
    usage[owner(job)].added += Of(pass.snapshot, job, after - before);
  }
  return usage;
}

void CheckGuarantees(Pass& pass) {
  const Snapshot& snapshot = pass.snapshot;
  const std::vector<Usage> usage = UsageAfter(pass, snapshot.queues.size(), [](const Job& job) {
    return job.preemptible || job.grand_challenge ? -1 : job.queue;
  });
  for (int kind = 0; kind < kMaxResources; ++kind) {
    const bool governed =
        std::any_of(snapshot.queues.begin(), snapshot.queues.end(), [&](const Queue& queue) {
          return queue.guaranteed[kind] > 0 || queue.ceiling[kind] != kUnlimited;
        });
    for (size_t queue = 0; governed && queue < usage.size(); ++queue) {
      const int64_t after = usage[queue].before[kind] + usage[queue].added[kind];
      const int64_t guaranteed = snapshot.queues[queue].guaranteed[kind];
      if (usage[queue].added[kind] > 0 && after > guaranteed)
        pass.Report(
            "queue {}: resource {}: jobs that are not preemptible use {} after this pass, "
            "guaranteed are {}",
            snapshot.queues[queue].name, kind, after, guaranteed);
    }
  }
}

}  // namespace

void CheckQuotas(Pass& pass) {
  CheckGuarantees(pass);
  const Snapshot& snapshot = pass.snapshot;
  const std::vector<Usage> by_queue =
      UsageAfter(pass, snapshot.queues.size(), [](const Job& job) { return job.queue; });
  for (size_t queue = 0; queue < by_queue.size(); ++queue) {
    const Resources after = by_queue[queue].before + by_queue[queue].added;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (by_queue[queue].added[kind] > 0 && after[kind] > snapshot.queues[queue].ceiling[kind])
        pass.Report("queue {}: resource {}: {} in use after this pass, the ceiling is {}",
                    snapshot.queues[queue].name, kind, after[kind],
                    snapshot.queues[queue].ceiling[kind]);
  }
  const std::vector<Usage> by_user =
      UsageAfter(pass, snapshot.users.size(), [](const Job& job) { return job.user; });
  for (size_t user = 0; user < by_user.size(); ++user) {
    const int64_t added = by_user[user].added.gpu(), after = by_user[user].before.gpu() + added;
    const int64_t cap = snapshot.users[user].CapAt(snapshot.now);
    if (added > 0 && after > cap)
      pass.Report("user {}: {} GPUs after this pass, the cap is {}", snapshot.users[user].name,
                  after, cap);
  }
}

}  // namespace renzan::cluster::check
