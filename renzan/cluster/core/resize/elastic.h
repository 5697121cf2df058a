#pragma once

// Which elastic jobs grow into what the pending queue has left free?

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/entitlement.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// Adds workers to elastic jobs: to jobs that start in this cycle, and to running jobs that
// checkpoint, by a restart (decisions.resizes), where that pays (ServiceLevels::MayGrow), at most
// once every `min_between`. By priority, then submission; never on reserved resources, and never so
// far that a job would no longer be within quota.
void GrowElasticJobs(ClusterView& view, Quota& quota, Entitlement& entitlement,
                     const Occupants& occupants, TimeMs min_between, Decisions& decisions);

}  // namespace renzan::cluster
