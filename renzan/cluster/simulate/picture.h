#pragma once

// Draws a simulation. A pure function.

#include <string>

#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// A self-contained SVG of 1200 by 600: GPUs in use over time, stacked by queue, with a line for the
// available GPUs; above, GPUs requested by pending jobs; below, when the largest jobs waited and
// ran.
std::string DrawTimeline(const SimulationResult& result, const std::string& title);

}  // namespace renzan::cluster::simulate
