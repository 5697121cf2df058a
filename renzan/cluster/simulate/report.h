#pragma once

// Metrics as a table and as JSON. Pure functions.

#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/simulate/metrics.h"

namespace renzan::cluster::simulate {

using NamedMetrics = std::vector<std::pair<std::string, Metrics>>;  // by policy

// One column per policy, one row per metric, readable durations.
std::string WriteTable(const NamedMetrics& policies);

// {"policies": [{"policy": "fifo", "jobs": ..., ...}, ...]}; independent of the machine.
std::string WriteJson(const NamedMetrics& policies);

// "45.0s", "12.5m", "3.2h", "2.1d".
std::string FormatSeconds(double seconds);

}  // namespace renzan::cluster::simulate
