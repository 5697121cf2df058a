#pragma once

// The constraint that keeps a pending job waiting, and by how much it fails, in one sentence. Pure.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// `wait`: from the last scheduling cycle on this snapshot or on an earlier one. "needs one worker
// with 8 GPUs; room now for 0; n0 has 6 of 8 GPUs free"
std::string WhyItWaits(const Snapshot& snapshot, const Wait& wait);

// "a, b, c, d and 3 more"
std::string ListSome(const std::vector<std::string>& names);

}  // namespace renzan::cluster
