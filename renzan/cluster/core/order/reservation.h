#pragma once

// Which nodes are reserved for the first job that cannot start?

#include <optional>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// A placement for the gang at its minimum size, on the nodes where the least has to end first: GPUs
// (CPUs where there are none) times the expected remaining run time. Only jobs that yield are
// backfilled onto a reservation, so what has to end only falls from cycle to cycle, until the job
// starts. None if no job's end would make room.
std::optional<Placement> FindReservation(const ClusterView& view, const Quota& quota,
                                         const Occupants& occupants, const Job& job);

}  // namespace renzan::cluster
