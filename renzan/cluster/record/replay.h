#pragma once

// Replays a recorded cycle through the scheduler. Pure.

#include <string>

#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

// Empty if the decisions are the same; else the first difference: "starts[0].placement[0].node: 3
// was recorded, and now it is 5".
std::string DifferenceOnReplay(const Cycle& cycle);

}  // namespace renzan::cluster::record
