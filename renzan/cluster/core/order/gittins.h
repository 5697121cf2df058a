#pragma once

// The Gittins index of a job whose run time is known in distribution: the best ratio, over all
// amounts of further service, of the chance that it ends within that amount to the service that it
// then uses in the mean. Serving the highest index first minimises the mean time in the system of
// jobs that can be stopped at no cost (Gittins, "Bandit processes and dynamic allocation indices",
// 1979; Aalto et al., "On the Gittins index in the M/G/1 queue", 2009).

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// 1 / the index of a job with this service, in milliseconds, or the largest such value at any
// earlier point: so it only rises, and a job that is nearly done is treated like one that never
// ends. At least the service itself, which is 1 / the index if all that is known of a run time is
// that it has no typical scale (a density like 1 / t^2). So least attained service is the special
// case without predictions.
//
// It rises with the service, and jumps where the service reaches one of the predicted quantiles.
TimeMs GittinsService(const RunTimeQuantiles& quantiles, TimeMs service);

}  // namespace renzan::cluster
