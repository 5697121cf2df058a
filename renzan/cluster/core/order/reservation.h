#pragma once

// Which nodes are kept for the first job that cannot start?

#include <optional>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// Where the gang will stand at its minimum: the nodes on which the least must end before it can,
// counted in GPUs (CPUs where there are none), or, where it is known when jobs end, in the time
// until then. What is kept is never filled with jobs that do not yield, so the least that must end
// only falls from cycle to cycle, and the job starts when it is nothing. None if nothing that ends
// would ever help.
std::optional<Placement> FindReservation(const ClusterView& view, const Quota& quota,
                                         const Occupants& occupants, const Job& job);

}  // namespace renzan::cluster
