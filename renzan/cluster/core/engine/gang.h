#pragma once

// What happens to a gang, as changes of the facts about its job. This is the only code that changes
// a job's state: the daemon, the simulator, forecasts and tests use it, so that they all
// follow the same rules.
//
//   pending -- StartGang --> running -- StopGang, EvictGang --> stopping -- RequeueGang --> pending
//                            running -- MoveGang --> resizing -- RestartGang --> running
//                                                    resizing -- StopGang, EvictGang --> stopping
//
// A gang that fails by itself goes from any state to pending (RequeueGang).

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

void StartGang(Job& job, const Placement& placement, bool backfilled, TimeMs now);

// It is told to stop, by the scheduler or by its user, and will be requeued.
void StopGang(Job& job, const Stop& stop);

// It is ended by something else: its node fails, or it has been cancelled.
void EvictGang(Job& job);

// It is told to stop, and will restart on the target.
void MoveGang(Job& job, const Resize& resize);

// Its processes have exited, and start on its target.
void RestartGang(Job& job, TimeMs now);

// Jobs whose nodes will no longer be reserved for another job: they are not backfilled any more.
std::vector<JobId> NoLongerBackfilled(const std::vector<Reservation>& reservations,
                                      const Snapshot& snapshot);
void SetReservations(const std::vector<Reservation>& reservations, Snapshot& snapshot);

// It failed soon after its start on that node, and avoids it from now on.
void FailedEarly(Job& job, const std::string& node);

// Its processes exited at `when`: it waits from then on.
void RequeueGang(Job& job, TimeMs when);

}  // namespace renzan::cluster
