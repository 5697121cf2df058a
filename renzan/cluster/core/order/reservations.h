#pragma once

// Which nodes are kept for which pending jobs. A job that needs the ends of several others would
// starve if smaller ones took each piece that becomes free. Once it is overdue (pending_queue.h),
// the nodes on which the least has to end are reserved for it.
//
// A reservation costs only what it gains. It does not bind jobs that go before its owner by right
// (Entitlement::Precedes), nor those that will very likely have ended before the reserved room can
// be whole. Of the others, jobs that yield are backfilled there, and all that do not wait, so that
// the amount that still has to end falls.
//
// A job that the end of any one job can serve needs no reservation. Of the others, those with the
// greatest weight (GPUs times waiting time) go first, up to a share of the cluster, because free
// resources on reserved nodes stay idle if no pending job yields. A single job may have more than
// that share, but only for so long that, over the time that the job has waited, it is no more. A
// reservation whose room will not be whole in that time ends. Not thread-safe.

#include <map>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/preempt/preemption.h"

namespace renzan::cluster {

class Reservations {
 public:
  // Keeps the snapshot's reservations as far as they are still useful, and takes their nodes out of
  // what is unreserved in `view`. `share`: of the cluster, see above.
  Reservations(ClusterView& view, const Occupants& occupants, const Entitlement& entitlement,
               double share, TimeMs overdue_after);

  bool none() const { return all_.empty(); }
  const std::vector<Reservation>& all() const { return all_; }
  // The nodes reserved for the job; null if there are none.
  const Placement* Of(JobId job) const;
  // The job that has reserved any of these nodes, of those that bind; 0: none.
  JobId OwnerOf(const Placement& placement, int not_binding) const;

  // The reservations that do not bind the job, its own among them, as a number: equal sets have
  // equal numbers, 0 is the empty one.
  int NotBinding(const Job& job);
  // While a job looks for room, these nodes are unreserved.
  void Lift(int not_binding);
  // `without`: a job whose reservation stays lifted, because it has been given its room; 0: none.
  void Restore(int not_binding, JobId without);
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
  bool CanBeUsed(const Reservation& reservation) const;
  bool HasRoomFor(const Job& job) const;
  // When there will be room for the owner, if the jobs in its way end no sooner than this share of
  // their like.
  TimeMs WholeAt(const Job& owner, const Placement& placement, double share) const;
  bool CostsNoMoreThanItsShare(const Job& owner, const Placement& placement) const;
  bool Binds(const Reservation& reservation, const Job& job, TimeMs ends) const;
  int64_t SizeOf(const Job& job) const;
  const Resources& Each(const Job& job) const {
    return view_.snapshot().worker_requests[job.request].per_worker;
  }

  ClusterView& view_;
  const Occupants& occupants_;
  const Entitlement& entitlement_;
  const TimeMs overdue_after_;
  const double most_;  // of the packing kind
  int64_t reserved_ = 0;
  std::vector<Reservation> all_;
  std::map<JobId, TimeMs> whole_at_;  // by owner: hardly sooner
  TimeMs last_whole_at_ = 0;          // of these
  // What NotBinding() has returned, by number, and the numbers.
  std::vector<std::vector<JobId>> sets_ = {{}};
  std::map<std::vector<JobId>, int> numbers_ = {{{}, 0}};
};

}  // namespace renzan::cluster
