#include "renzan/cluster/core/order/reservation.h"

#include <algorithm>

#include "renzan/cluster/core/preempt/victims.h"

namespace renzan::cluster {
namespace {

// Assumed for a job without an expected end.
constexpr double kUnknownRemainingMs = 3600'000;

}  // namespace

std::optional<Placement> FindReservation(const ClusterView& view, const Quota& quota,
                                         const Occupants& occupants, const Job& job) {
  const Snapshot& snapshot = view.snapshot();
  const VictimRules rules{
      .may_stop = [](const Job&, const Quota&) { return true; },
      .may_shrink = [](const Job&, const Quota&) { return false; },
      .cost = [&](int index, const Quota&) -> double {
        const Job& blocker = snapshot.jobs[index];
        if (blocker.backfilled) return 0;
        const double remaining =
            blocker.expected_end
                ? static_cast<double>(std::max<TimeMs>(*blocker.expected_end - snapshot.now, 0))
                : kUnknownRemainingMs;
        const int64_t each =
            snapshot.worker_requests[blocker.request].per_worker[view.packing_kind()];
        return static_cast<double>(each * NumWorkers(blocker.placement)) * remaining;
      }};
  const std::optional<VictimPlan> plan = FindVictims(view, quota, occupants, job, rules);
  if (!plan) return std::nullopt;
  return plan->placement;
}

}  // namespace renzan::cluster
