#pragma once

// What happens to a gang, as changes of the facts about its job. This is the only code that changes
// a job's state: the daemon, the simulator, forecasts and tests use it, so that none of them can
// live by other rules than the others.
//
//   pending -- StartGang --> running -- StopGang, EvictGang --> stopping -- RequeueGang --> pending
//                            running -- MoveGang --> resizing -- RestartGang --> running
//                                                    resizing -- StopGang, EvictGang --> stopping
//
// A gang that fails by itself goes from any state to pending (RequeueGang).

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

void StartGang(Job& job, const Placement& placement, bool backfilled, TimeMs now);

// It is told to stop, by the scheduler or by its user, and will be requeued. `on_behalf_of`: the
// job it makes room for, or 0.
void StopGang(Job& job, JobId on_behalf_of);

// It is ended by something else: its node fails, or it has been cancelled.
void EvictGang(Job& job);

// It is told to stop, and will restart on `target`.
void MoveGang(Job& job, const Placement& target, JobId on_behalf_of);

// Its processes have exited, and start on its target.
void RestartGang(Job& job, TimeMs now);

// Its processes exited at `when`: it waits from then on.
void RequeueGang(Job& job, TimeMs when);

}  // namespace renzan::cluster
