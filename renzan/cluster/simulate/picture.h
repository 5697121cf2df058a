#pragma once

// A simulation as a picture. A pure function.

#include <string>

#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// An SVG of 1200 by 600: the GPUs that run over time, stacked by queue, under a line of how many
// there are; above, those that wait; below, when each of the largest jobs waited and ran. It needs
// nothing beside itself.
std::string DrawTimeline(const SimulationResult& result, const std::string& title);

}  // namespace renzan::cluster::simulate
