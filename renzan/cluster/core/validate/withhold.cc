#include "renzan/cluster/core/validate/withhold.h"

#include <algorithm>
#include <set>

namespace renzan::cluster {
namespace {

class Withholding {
 public:
  Withholding(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
              Decisions& decisions)
      : snapshot_(snapshot), decisions_(decisions) {
    for (const SnapshotFault& fault : faults) {
      if (fault.job != 0) jobs_.insert(fault.job);
      if (fault.node >= 0) nodes_.insert(fault.node);
    }
  }

  void Run() {
    for (const Stop& stop : decisions_.stops) CheckVictim(stop.job, stop.on_behalf_of);
    for (const Resize& resize : decisions_.resizes) CheckVictim(resize.job, resize.on_behalf_of);
    for (const JobId job : blocked_) Wait(job);
    std::erase_if(decisions_.stops,
                  [&](const Stop& stop) { return blocked_.contains(stop.on_behalf_of); });
    std::erase_if(decisions_.resizes, [&](const Resize& resize) {
      return jobs_.contains(resize.job) || blocked_.contains(resize.on_behalf_of) ||
             IsFaulty(resize.target);
    });
    std::erase_if(decisions_.starts, [&](const Start& start) {
      const bool faulty = jobs_.contains(start.job) || IsFaulty(start.placement);
      if (faulty) Wait(start.job);
      return faulty;
    });
    std::erase_if(decisions_.checkpoints, [&](JobId job) { return jobs_.contains(job); });
    std::erase_if(decisions_.scale_in, [&](const ScaleIn& in) { return nodes_.contains(in.node); });
    std::erase_if(decisions_.reservations, [&](const Reservation& reservation) {
      return jobs_.contains(reservation.job) || IsFaulty(reservation.placement);
    });
  }

 private:
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

  void Wait(JobId job) {
    const auto at = std::find_if(decisions_.waits.begin(), decisions_.waits.end(),
                                 [&](const cluster::Wait& wait) { return wait.job == job; });
    if (at != decisions_.waits.end())
      *at = {job, WaitReason::kWithheld};
    else
      decisions_.waits.push_back({job, WaitReason::kWithheld});
  }

  const Snapshot& snapshot_;
  Decisions& decisions_;
  std::set<JobId> jobs_;     // faulty
  std::set<int> nodes_;      // faulty
  std::set<JobId> blocked_;  // preemptors with a faulty victim
};

}  // namespace

void WithholdFrom(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                  Decisions& decisions) {
  Withholding(snapshot, faults, decisions).Run();
}

void WithholdAll(Decisions& decisions) {
  Decisions kept{.waits = std::move(decisions.waits), .look_again = decisions.look_again};
  for (const Start& start : decisions.starts)
    kept.waits.push_back({start.job, WaitReason::kWithheld});
  for (Wait& wait : kept.waits)
    if (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting)
      wait = {wait.job, WaitReason::kWithheld};
  decisions = std::move(kept);
}

}  // namespace renzan::cluster
