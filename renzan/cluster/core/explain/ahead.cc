#include "renzan/cluster/core/explain/ahead.h"

#include <fmt/format.h>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/core/order/rank.h"

namespace renzan::cluster {
namespace {

bool MayStart(const Job& job, TimeMs now) {
  return job.state == JobState::kPending && job.held.empty() && job.eligible_at <= now;
}

}  // namespace

std::string AheadByFairShare(const Snapshot& snapshot, const Job& job,
                             const ScheduleOptions& options) {
  const Queue& queue = snapshot.queues[job.queue];
  if (!queue.fair_share) return "";
  const Ranks ranks(snapshot, options.levels);
  const Rank& its = ranks.Of(job);
  const Job* first = nullptr;
  int more = -1;
  for (const Job& other : snapshot.jobs) {
    const Rank& rank = ranks.Of(other);
    if (other.queue != job.queue || !MayStart(other, snapshot.now) || rank.right != its.right ||
        rank.use >= its.use)
      continue;
    ++more;
    if (first == nullptr || rank < ranks.Of(*first)) first = &other;
  }
  if (first == nullptr) return "";
  const auto hours = [&](int user) { return UsedBy(*queue.fair_share, user) / 3600; };
  return fmt::format(
      "job {} of {}, who has used {:.3g} {} hours of queue {} lately, and {} {:.3g}{}", first->id,
      snapshot.users[first->user].name, hours(first->user),
      KindThatCounts(snapshot) == kGpu ? "GPU" : "core", queue.name, snapshot.users[job.user].name,
      hours(job.user), more == 0 ? "" : fmt::format("; and {}", Counted(more, "more job")));
}

}  // namespace renzan::cluster
