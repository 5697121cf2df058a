#pragma once

// Draws a simulation. A pure function.

#include <string>

#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// A self-contained SVG of 1200 by 770, from the top: GPUs requested by pending jobs over time; GPUs
// in use, stacked by queue, with a line for the available GPUs; the mean waiting of the jobs that
// were submitted then, by GPUs (kSizeRanges), on a logarithmic scale; when the largest jobs waited
// and ran.
std::string DrawTimeline(const SimulationResult& result, const std::string& title);

}  // namespace renzan::cluster::simulate
