// Queue limits and user caps hold after the cycle. A queue or user that is already over (a quota
// override has expired, a limit was lowered) gets nothing more. Jobs that are not preemptible stay
// within their queue's guaranteed quota. Only a grand challenge is exempt.

#include <algorithm>
#include <array>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

struct Usage {
  Resources before;  // what stays
  Resources added;   // by this cycle
  // For each kind, the job of lowest priority, and among those the newest, of the jobs that add to
  // it: the first that has to wait if the sum is too large.
  std::array<const Job*, kMaxResources> last_to_add{};

  // In order of id.
  void Add(const Job& job, const Resources& amount) {
    added += amount;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (const Job*& last = last_to_add[kind];
          amount[kind] > 0 && (last == nullptr || job.priority <= last->priority))
        last = &job;
  }
};

// Adds each job's use after the cycle to the usage of `owner(job)`.
template <typename Owner>
std::vector<Usage> UsageAfter(const CheckContext& context, size_t owners, Owner owner) {
  std::vector<Usage> usage(owners);
  for (const Job& job : context.snapshot.jobs) {
    if (context.stops.count(job.id) > 0 || job.quota_exempt || owner(job) < 0) continue;
    int before = CountedWorkers(job), after = before;
    if (const auto start = context.starts.find(job.id); start != context.starts.end())
      after = NumWorkers(start->second->placement);
    if (const auto resize = context.resizes.find(job.id); resize != context.resizes.end())
      after = NumWorkers(resize->second->target);
    before = std::min(before, after);
    usage[owner(job)].before += Of(context.snapshot, job, before);
    usage[owner(job)].Add(job, Of(context.snapshot, job, after - before));
  }
  return usage;
}

void CheckGuarantees(CheckContext& context) {
  const Snapshot& snapshot = context.snapshot;
  const std::vector<Usage> usage = UsageAfter(context, snapshot.queues.size(), [](const Job& job) {
    return job.preemptible ? -1 : job.queue;
  });
  const std::array<bool, kMaxResources> guaranteed_to_any = GuaranteedToAny(snapshot);
  for (int kind = 0; kind < kMaxResources; ++kind) {
    if (!guaranteed_to_any[kind]) continue;
    for (size_t queue = 0; queue < usage.size(); ++queue) {
      const int64_t after = usage[queue].before[kind] + usage[queue].added[kind];
      const int64_t guaranteed = snapshot.queues[queue].guaranteed[kind];
      if (usage[queue].added[kind] > 0 && after > guaranteed)
        context.ReportConsequence(
            usage[queue].last_to_add[kind]->id,
            "queue {}: resource {}: jobs that are not preemptible use {} after this cycle, the "
            "guaranteed quota is {}",
            snapshot.queues[queue].name, kind, after, guaranteed);
    }
  }
}

}  // namespace

void CheckQuotas(CheckContext& context) {
  CheckGuarantees(context);
  const Snapshot& snapshot = context.snapshot;
  const std::vector<Usage> by_queue =
      UsageAfter(context, snapshot.queues.size(), [](const Job& job) { return job.queue; });
  for (size_t queue = 0; queue < by_queue.size(); ++queue) {
    const Resources after = by_queue[queue].before + by_queue[queue].added;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (by_queue[queue].added[kind] > 0 && after[kind] > snapshot.queues[queue].limit[kind])
        context.ReportConsequence(
            by_queue[queue].last_to_add[kind]->id,
            "queue {}: resource {}: {} in use after this cycle, the limit is {}",
            snapshot.queues[queue].name, kind, after[kind], snapshot.queues[queue].limit[kind]);
  }
  const std::vector<Usage> by_user =
      UsageAfter(context, snapshot.users.size(), [](const Job& job) { return job.user; });
  for (size_t user = 0; user < by_user.size(); ++user) {
    const int64_t added = by_user[user].added.gpu(), after = by_user[user].before.gpu() + added;
    const int64_t cap = snapshot.users[user].CapAt(snapshot.now);
    if (added > 0 && after > cap)
      context.ReportConsequence(by_user[user].last_to_add[kGpu]->id,
                                "user {}: {} after this cycle, the cap is {}",
                                snapshot.users[user].name, Counted(after, "GPU"), cap);
  }
}

}  // namespace renzan::cluster::check
