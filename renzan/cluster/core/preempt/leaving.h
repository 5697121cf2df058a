#pragma once

// Stops that no other job asks for: workers on draining nodes, and jobs over a user cap whose
// temporary quota override has expired.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// Moves a job's workers on draining nodes to other nodes. If there is no room, an elastic job
// continues with its other workers, and any other job is stopped. A job that does not save when
// stopped stays until it ends, unless the node is about to go away.
void LeaveDrainingNodes(ClusterView& view, Quota& quota, Occupants& occupants,
                        Decisions& decisions);

// Stops jobs of users over their cap: those with the least right first, then those that lose the
// least work. Only stops jobs that save their work: lowering a cap must not lose work.
void EnforceUserCaps(ClusterView& view, Quota& quota, Occupants& occupants, const Ranks& ranks,
                     Decisions& decisions);

}  // namespace renzan::cluster
