// Room that is kept for a job is not given to jobs of lower priority that nobody may stop and of
// which nobody knows how long they run. Says only what is certain: where nothing is guaranteed, by
// which a job of lower priority may go first; where no job moves; and of kinds that such a job
// uses, because what others hold of the rest must end first anyway.

#include <algorithm>
#include <array>

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

bool IsForRoom(const CheckContext& context, JobId job) {
  const auto wait = context.waits.find(job);
  return wait != context.waits.end() && (wait->second->reason == WaitReason::kResources ||
                                         wait->second->reason == WaitReason::kFragmented ||
                                         wait->second->reason == WaitReason::kReserved);
}

bool MayRunForEver(const Job& job) {
  return !job.preemptible && !job.quota_exempt && job.run_time.back() == 0;
}

// What is held on the nodes and does not end or yield for the owner.
Held HeldAgainst(const CheckContext& context, const Job& owner) {
  const Snapshot& snapshot = context.snapshot;
  Held held(snapshot.nodes.size());
  const auto add = [&](const Job& job, const Placement& placement) {
    for (const Placed& placed : placement) held[placed.node] += Of(snapshot, job, placed.workers);
  };
  for (const Job& job : snapshot.jobs)
    if (job.state != JobState::kStopping && !job.backfilled && !context.stops.contains(job.id))
      add(job, job.placement);
  for (const auto& [id, start] : context.starts)
    if (const Job& job = *snapshot.Find(id); MayRunForEver(job) || job.priority >= owner.priority)
      add(job, start->placement);
  return held;
}

// Whether there is not as much of something that `job` uses.
bool LacksWhatItUses(const Resources& needed, const Resources& capacity, const Resources& job) {
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (job[kind] > 0 && needed[kind] > capacity[kind]) return true;
  return false;
}

void CheckOwner(CheckContext& context, const Reservation& kept) {
  const Snapshot& snapshot = context.snapshot;
  const Job& owner = *snapshot.Find(kept.job);
  const Held held = HeldAgainst(context, owner);
  for (const auto& [id, start] : context.starts) {
    const Job& job = *snapshot.Find(id);
    const bool room_was_made = std::ranges::any_of(
        snapshot.jobs, [&](const Job& other) { return other.stopping_for == job.id; });
    if (!MayRunForEver(job) || job.priority >= owner.priority || room_was_made) continue;
    const std::map<int, int> its = WorkersByNode(start->placement);
    for (const Placed& placed : kept.placement)
      if (its.contains(placed.node) &&
          LacksWhatItUses(held[placed.node] + Of(snapshot, owner, placed.workers),
                          snapshot.nodes[placed.node].capacity, Of(snapshot, job, 1)))
        context.ReportFor(id, "job {} starts on node {} in room that is kept for job {}", id,
                          snapshot.nodes[placed.node].name, owner.id);
  }
}

}  // namespace

void CheckKeptRoom(CheckContext& context) {
  const std::array<bool, kMaxResources> guaranteed = GuaranteedToAny(context.snapshot);
  if (std::ranges::any_of(guaranteed, [](bool is) { return is; }) || !context.resizes.empty())
    return;
  const std::vector<Reservation>& before = context.snapshot.reservations;
  for (const Reservation& kept : context.decisions.reservations)
    if (std::ranges::find(before, kept) != before.end() && IsForRoom(context, kept.job))
      CheckOwner(context, kept);
}

}  // namespace renzan::cluster::check
