#include "renzan/cluster/core/validate/withhold.h"

#include <algorithm>
#include <set>

namespace renzan::cluster {
namespace {

void MakeWait(JobId job, Decisions& decisions) {
  const auto at = std::find_if(decisions.waits.begin(), decisions.waits.end(),
                               [&](const Wait& wait) { return wait.job == job; });
  if (at != decisions.waits.end())
    *at = {job, WaitReason::kWithheld};
  else
    decisions.waits.push_back({job, WaitReason::kWithheld});
}

class Withholding {
 public:
  Withholding(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
              Decisions& decisions)
      : snapshot_(snapshot), decisions_(decisions) {
    for (const SnapshotFault& fault : faults) {
      if (fault.job != 0) AddJob(fault.job);
      if (fault.node >= 0) nodes_.insert(fault.node);
    }
  }

  void Run() {
    for (const Stop& stop : decisions_.stops) CheckVictim(stop.job, stop.on_behalf_of);
    for (const Resize& resize : decisions_.resizes) {
      CheckVictim(resize.job, resize.on_behalf_of);
      CheckTarget(resize.job, resize.on_behalf_of != 0 ? resize.on_behalf_of : resize.job,
                  resize.target);
    }
    for (const Start& start : decisions_.starts) CheckTarget(start.job, start.job, start.placement);
    WithholdFor(blocked_, decisions_);
    std::erase_if(decisions_.checkpoints, [&](JobId job) { return jobs_.contains(job); });
    std::erase_if(decisions_.scale_in, [&](const ScaleIn& in) { return nodes_.contains(in.node); });
    std::erase_if(decisions_.reservations, [&](const Reservation& reservation) {
      return jobs_.contains(reservation.job) || IsFaulty(reservation.placement);
    });
  }

 private:
  // If a job that, by its state, holds nothing has workers on a node, what is free there is
  // unknown.
  void AddJob(JobId id) {
    jobs_.insert(id);
    const Job& job = *snapshot_.Find(id);
    if (job.state == JobState::kPending)
      for (const Placed& placed : job.placement) nodes_.insert(placed.node);
    if (job.state != JobState::kResizing)
      for (const Placed& placed : job.target) nodes_.insert(placed.node);
  }

  bool IsFaulty(const Placement& placement) const {
    return std::any_of(placement.begin(), placement.end(),
                       [&](const Placed& placed) { return nodes_.contains(placed.node); });
  }

  void CheckVictim(JobId job, JobId on_behalf_of) {
    if (on_behalf_of == 0) return;
    const Job* victim = snapshot_.Find(job);
    if (jobs_.contains(job) || jobs_.contains(on_behalf_of) ||
        (victim != nullptr && IsFaulty(victim->placement)))
      blocked_.insert(on_behalf_of);
  }

  void CheckTarget(JobId job, JobId on_behalf_of, const Placement& target) {
    if (jobs_.contains(job) || IsFaulty(target)) blocked_.insert(on_behalf_of);
  }

  const Snapshot& snapshot_;
  Decisions& decisions_;
  std::set<JobId> jobs_;  // faulty
  std::set<int> nodes_;   // faulty
  // Jobs that would start or move to a faulty node, or preempt a faulty victim.
  std::set<JobId> blocked_;
};

}  // namespace

void WithholdFrom(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                  Decisions& decisions) {
  Withholding(snapshot, faults, decisions).Run();
}

bool WithholdFor(const std::set<JobId>& about, Decisions& decisions) {
  std::set<JobId> jobs = about;
  const auto add_preemptors = [&](const auto& victims) {
    for (const auto& victim : victims)
      if (victim.on_behalf_of != 0 && about.contains(victim.job)) jobs.insert(victim.on_behalf_of);
  };
  add_preemptors(decisions.stops);
  add_preemptors(decisions.resizes);
  std::set<JobId> pending;  // that would have started, or preempted others
  const auto concerns_them = [&](const auto& victim) {
    const bool makes_room = victim.on_behalf_of != 0 && jobs.contains(victim.on_behalf_of);
    if (makes_room) pending.insert(victim.on_behalf_of);
    return makes_room || jobs.contains(victim.job);
  };
  size_t dropped = std::erase_if(decisions.stops, concerns_them);
  dropped += std::erase_if(decisions.resizes, concerns_them);
  dropped += std::erase_if(decisions.starts, [&](const Start& start) {
    const bool found = jobs.contains(start.job);
    if (found) pending.insert(start.job);
    return found;
  });
  dropped += std::erase_if(decisions.checkpoints, [&](JobId job) { return jobs.contains(job); });
  dropped += std::erase_if(decisions.reservations, [&](const Reservation& reservation) {
    return jobs.contains(reservation.job);
  });
  for (const JobId job : jobs) {
    // Without the stops that make room for it, a pipelined job waits like any other.
    const bool pipelined = std::any_of(
        decisions.waits.begin(), decisions.waits.end(),
        [&](const Wait& wait) { return wait.job == job && wait.reason == WaitReason::kPipelined; });
    if (pipelined && pending.insert(job).second) ++dropped;
  }
  for (const JobId job : pending) MakeWait(job, decisions);
  return dropped > 0;
}

void WithholdAll(const Snapshot& snapshot, Decisions& decisions) {
  Decisions kept{.reservations = snapshot.reservations,
                 .waits = std::move(decisions.waits),
                 .look_again = decisions.look_again};
  for (const Start& start : decisions.starts)
    kept.waits.push_back({start.job, WaitReason::kWithheld});
  for (Wait& wait : kept.waits)
    if (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting)
      wait = {wait.job, WaitReason::kWithheld};
  decisions = std::move(kept);
}

}  // namespace renzan::cluster
