#pragma once

// Which nodes are kept for which pending jobs. A job that needs the ends of several others would
// starve if smaller ones took each piece that becomes free. Once it is overdue (pending_queue.h),
// the nodes on which the least has to end are reserved for it, and it keeps them until it has
// started: only jobs that yield are backfilled there, so the amount that still has to end only
// falls.
//
// A job that the end of any one job can serve needs no reservation. Of the others, those with the
// greatest weight (GPUs times waiting time) go first, up to a share of the cluster, because free
// resources on reserved nodes stay idle if no pending job yields. Not thread-safe.

#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/preempt/preemption.h"

namespace renzan::cluster {

class Reservations {
 public:
  // Keeps the snapshot's reservations as far as they are still useful, and takes their nodes out of
  // what is unreserved in `view`. `share`: at most this share of the cluster is reserved at a time;
  // a single job may have more.
  Reservations(ClusterView& view, double share, TimeMs overdue_after);

  bool none() const { return all_.empty(); }
  const std::vector<Reservation>& all() const { return all_; }
  // The nodes reserved for the job; null if there are none.
  const Placement* Of(JobId job) const;
  // The job that has reserved any of these nodes; 0: none.
  JobId OwnerOf(const Placement& placement) const;

  // While the owner looks for room, its nodes are unreserved; it gives them up by starting.
  void Lift(const Job& owner);
  void Restore(const Job& owner);
  // Moves the reservation: the owner is pipelined onto other nodes, which `view` counts already.
  void MoveTo(const Job& owner, const Placement& placement);
  void GiveUp(const Job& owner);

  // The jobs that may reserve nodes, heaviest first: those that cannot start, are overdue, and have
  // no reservation.
  std::vector<const Job*> Candidates(const std::vector<Wait>& waits) const;
  // Reserves nodes, unless one end serves the job, the share is used up, or nothing would make
  // room.
  void Add(const Job& job, const Quota& quota, const Occupants& occupants,
           const Preemption& preemption, const Preemptor& preemptor);

 private:
  bool IsOfUse(const Reservation& reservation) const;
  bool HasRoomFor(const Job& job) const;
  int64_t SizeOf(const Job& job) const;
  const Resources& Each(const Job& job) const {
    return view_.snapshot().worker_requests[job.request].per_worker;
  }

  ClusterView& view_;
  const TimeMs overdue_after_;
  const int64_t most_;  // of the packing kind
  int64_t reserved_ = 0;
  std::vector<Reservation> all_;
};

}  // namespace renzan::cluster
