#pragma once

// How often the nodes of a pool are interrupted, according to the configuration and to observation.
// Pure functions.

#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

struct PoolHistory {
  double stated_per_hour = 0;  // of one node; 0: not stated
  PoolRecord seen;
};

// Interruptions per node and hour: the mean of a gamma distribution whose prior has the weight of
// one interruption at the stated rate, (1 + seen) / (1 / stated + node hours). If no rate is
// stated, the prior is one day of one node without interruptions, so that a first interruption
// after a few minutes does not look like one every few minutes; the rate is 0 until one is seen.
double InterruptionsPerHour(const PoolHistory& pool);

}  // namespace renzan::cluster::local
