#pragma once

// Who grows into what is left when the line has been served?

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// Adds workers to elastic jobs: to those that start in this cycle at no cost, to running ones that
// checkpoint by a restart (decisions.resizes), at most once in `min_between`. By priority, then in
// the order in which they were submitted; only on firm room, so nobody's reservation is touched.
void GrowElasticJobs(ClusterView& view, Quota& quota, const Occupants& occupants,
                     TimeMs min_between, Decisions& decisions);

}  // namespace renzan::cluster
