#pragma once

// Metrics for people and for programs. Pure functions.

#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/simulate/metrics.h"

namespace renzan::cluster::simulate {

using NamedMetrics = std::vector<std::pair<std::string, Metrics>>;  // by policy

// One column for each policy, one line for each figure; durations as people read them.
std::string WriteTable(const NamedMetrics& policies);

// {"policies": [{"policy": "fifo", "jobs": ..., ...}, ...]}; nothing in it depends on the machine.
std::string WriteJson(const NamedMetrics& policies);

// "45.0s", "12.5m", "3.2h", "2.1d".
std::string FormatSeconds(double seconds);

}  // namespace renzan::cluster::simulate
