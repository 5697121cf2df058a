#pragma once

// Who must go although nobody wants the place? Workers on nodes that leave, and jobs over a cap
// whose quota override has expired.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// An elastic job that can go on without its workers on draining nodes is resized to the others, any
// other one is stopped. Who cannot save its work stays until it ends, unless the node vanishes.
void LeaveDrainingNodes(ClusterView& view, Quota& quota, Occupants& occupants,
                        Decisions& decisions);

// Stops jobs of users who have more GPUs than their cap, least work lost first; only such as
// checkpoint: a cap that falls costs nobody work.
void EnforceUserCaps(ClusterView& view, Quota& quota, Occupants& occupants, Decisions& decisions);

}  // namespace renzan::cluster
