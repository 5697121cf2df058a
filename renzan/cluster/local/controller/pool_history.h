#pragma once

// How often the nodes of a pool are interrupted: what the configuration states, and what has been
// seen since. Pure functions.

#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

struct PoolHistory {
  double stated_per_hour = 0;  // of one node; 0: nothing is stated
  PoolRecord seen;
};

// Interruptions per node and hour: the mean of a gamma distribution whose prior has the weight of
// one interruption at the stated rate, (1 + seen) / (1 / stated + node hours). Where nothing is
// stated the prior is a day of one node without any, so that the first loss on the first day does
// not look like one every few minutes; 0 for as long as nothing is seen.
double InterruptionsPerHour(const PoolHistory& pool);

}  // namespace renzan::cluster::local
