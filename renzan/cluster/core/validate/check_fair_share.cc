// Fair share: no job starts although one that is like it waits for the same room, whose user has
// used clearly less of the queue lately.
//
// Says only what is certain. One job of a queue may go first in a cycle because it is overdue, and
// where rooms differ (reservations, nodes to avoid), so may others.

#include <algorithm>
#include <map>

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

double UsedLatelyBy(const Snapshot& snapshot, const Job& job) {
  for (const UsedLately& used : snapshot.queues[job.queue].fair_share->used)
    if (used.user == job.user) return used.seconds;
  return 0;
}

// Whether nothing but their users, and what they have got so far, tells them apart.
bool AreAlike(const Job& a, const Job& b) {
  return a.queue == b.queue && a.request == b.request && a.priority == b.priority &&
         a.min_workers == b.min_workers && a.max_workers == b.max_workers &&
         a.checkpoints == b.checkpoints && a.preemptible == b.preemptible && a.failed_on.empty() &&
         b.failed_on.empty();
}

bool IsMadeRoomFor(const Snapshot& snapshot, JobId id) {
  for (const Job& job : snapshot.jobs)
    if (job.stopping_for == id) return true;
  return false;
}

}  // namespace

void CheckFairShare(CheckContext& context) {
  const Snapshot& snapshot = context.snapshot;
  if (!snapshot.reservations.empty()) return;
  std::map<int, double> most;  // by queue, of users with jobs
  for (const Job& job : snapshot.jobs)
    if (snapshot.queues[job.queue].fair_share)
      most[job.queue] = std::max(most[job.queue], UsedLatelyBy(snapshot, job));
  if (most.empty()) return;
  for (const Wait& wait : context.decisions.waits) {
    const Job& waiting = *snapshot.Find(wait.job);
    if (!most.contains(waiting.queue) || waiting.quota_exempt ||
        (wait.reason != WaitReason::kResources && wait.reason != WaitReason::kFragmented) ||
        !CapAllowsBeforeStops(snapshot, waiting))
      continue;
    const Job* overdue = nullptr;
    for (const auto& [id, start] : context.starts) {
      const Job& started = *snapshot.Find(id);
      if (started.quota_exempt || start->backfill || !AreAlike(started, waiting) ||
          IsMadeRoomFor(snapshot, id))
        continue;
      const double its = UsedLatelyBy(snapshot, started), less = UsedLatelyBy(snapshot, waiting);
      constexpr double kTooLittle = 1e-3;  // of the most, to make a difference
      if (its <= 2 * less || its <= kTooLittle * most[waiting.queue]) continue;
      if (overdue != nullptr)
        context.ReportFor(
            id, "jobs {} and {} start, but job {} waits, whose user has used less of queue {}",
            overdue->id, id, waiting.id, snapshot.queues[waiting.queue].name);
      overdue = &started;
    }
  }
}

}  // namespace renzan::cluster::check
