#pragma once

// Which nodes are kept for which pending jobs. A job that needs the ends of several others would
// starve if others took each piece that becomes free. There are two kinds.
//
// A claim is a matter of priority: what jobs of higher priority wait for must not go to others that
// they could never stop again. Whoever is first by priority, and could run once jobs of lower
// priority have ended that it may not stop (not preemptible), claims the nodes on which the least
// has to end, at once and however many these are; the next ones up to a share of the cluster. A
// claim binds only jobs that its owner precedes and could not stop: all others start there and, if
// need be, yield by their rank. It ends when somebody is in the way whom the owner does not
// precede.
//
// For an overdue job (pending_queue.h), nodes are reserved whoever runs there. Jobs that yield are
// backfilled; all that do not wait, so that the amount that still has to end falls. Those with the
// greatest weight (GPUs times waiting time) go first, up to a share of the cluster, because free
// resources on reserved nodes stay idle if no pending job yields. A single job may have more than
// that share, but only for so long that, over the time that the job has waited, it is no more. A
// reservation whose room will not be whole in that time ends.
//
// Either costs only what it gains. It does not bind jobs that go before its owner by right
// (Ranks::Precedes), nor those that will very likely have ended before the room can be whole.
// A job that the end of any one job can serve needs neither. Not thread-safe.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/preempt/preemption.h"
#include "renzan/cluster/core/preempt/victims.h"

namespace renzan::cluster {

class Reservations {
 public:
  // Keeps the snapshot's reservations as far as they are still useful, and takes their nodes out of
  // what is unreserved in `view`. `share`: of the cluster, see above.
  Reservations(ClusterView& view, const Occupants& occupants, const Ranks& ranks, double share,
               TimeMs overdue_after);

  bool none() const { return all_.empty(); }
  const std::vector<Reservation>& all() const { return all_; }
  // The nodes reserved for the job; null if there are none.
  const Placement* Of(JobId job) const;
  bool IsClaim(JobId job) const;
  // The job that has reserved any of these nodes, of those that bind; 0: none.
  JobId OwnerOf(const Placement& placement, int not_binding) const;

  // The reservations that do not bind the job, its own among them, as a number: equal sets have
  // equal numbers, 0 is the empty one.
  int NotBinding(const Job& job);
  // While a job looks for room, these nodes are unreserved.
  void Lift(int not_binding);
  // `without`: a job whose reservation stays lifted, because it has been given its room; 0: none.
  void Restore(int not_binding, JobId without);
  // Moves the reservation, if there is one: the owner is pipelined onto other nodes, which `view`
  // counts already. Others that do not bind it may lose theirs by that.
  void MoveTo(const Job& owner, const Placement& placement, int not_binding);
  // While it is lifted.
  void GiveUp(const Job& owner);

  // To be called in the order of the pending queue for each job that waits for room, while none is
  // lifted: makes or keeps its claim, if it has a right to one. Others that it precedes may lose
  // their reservations by that.
  void Claim(const Job& job, const Quota& quota, const Preemption& preemption,
             const Preemptor& preemptor);

  // Ends the job's claim, if it has one.
  void EndClaim(const Job& owner);

  // The jobs that may reserve nodes, heaviest first: those that cannot start, are overdue, and have
  // no reservation.
  std::vector<const Job*> Candidates(const std::vector<Wait>& waits) const;
  // Reserves nodes, unless one end serves the job, the share is used up, or nothing would make
  // room.
  void Add(const Job& job, const Quota& quota, const Preemption& preemption,
           const Preemptor& preemptor);

  // When a reservation might end although nothing else has changed; kNever if there is none.
  TimeMs LookAgain() const;

 private:
  bool CanBeUsed(const Reservation& reservation) const;
  bool HasRoomFor(const Job& job) const;
  // When there will be room for the owner, if the jobs in its way end no sooner than this share of
  // their like.
  TimeMs WholeAt(const Job& owner, const Placement& placement, double share) const;
  bool CostsNoMoreThanItsShare(const Job& owner, const Placement& placement) const;
  // Whether only jobs are in the way that yield to the owner, or that it precedes.
  bool IsByPriority(const Job& owner, const Placement& placement) const;
  // Whether the owner may stop the job once its room can be whole.
  bool Yields(const Job& job, const Job& owner) const;
  // Whether the owner precedes the job, but may not stop it.
  bool MustEndFor(const Job& job, const Job& owner) const;
  // Where the least work has to end for the job, if these may; none if one end serves it.
  std::optional<VictimPlan> LeastToEnd(
      const Job& job, const Quota& quota, const Preemption& preemption, const Preemptor& preemptor,
      const std::function<bool(const Job&, const Quota&)>& may_end) const;
  void Keep(const Job& owner, Placement placement, bool claim);
  // Of these reservations, which are lifted, those end for which there is no room beside the
  // others.
  void GiveUpBeyondCapacity(const std::vector<JobId>& owners);
  int NumberOf(std::vector<JobId> set);
  bool Binds(const Reservation& reservation, const Job& job, TimeMs ends) const;
  int64_t SizeOf(const Job& job) const;
  const Resources& Each(const Job& job) const {
    return view_.snapshot().worker_requests[job.request].per_worker;
  }

  ClusterView& view_;
  const Occupants& occupants_;
  const Ranks& ranks_;
  const TimeMs overdue_after_;
  const double most_;  // of the packing kind
  struct Terms {
    bool claim;
    TimeMs whole_at;  // hardly sooner
  };

  // Of the packing kind: for overdue jobs; by claims of jobs that were considered already.
  int64_t reserved_ = 0, claimed_ = 0;
  std::vector<JobId> claimants_;  // the owners of those claims
  std::vector<Reservation> all_;
  std::map<JobId, Terms> terms_;  // by owner
  TimeMs last_whole_at_ = 0;      // of these
  // The least right of a running job that is not preemptible, if there is one.
  std::optional<Right> least_fixed_;
  size_t claims_tried_ = 0;
  // Sets of reservations, by number, and the numbers.
  std::vector<std::vector<JobId>> sets_ = {{}};
  std::map<std::vector<JobId>, int> numbers_ = {{{}, 0}};
};

}  // namespace renzan::cluster
