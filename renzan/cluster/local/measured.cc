#include "renzan/cluster/local/measured.h"

#include <algorithm>

namespace renzan::cluster::local {

TimeMs SteadyCheckpoint(std::optional<TimeMs> before, TimeMs measured) {
  return std::max(measured, before.value_or(0) / 2);
}

void ApplyMeasured(const Measured& measured, Job& job) {
  job.checkpoint_cost_ms = measured.checkpoint_ms.value_or(job.checkpoint_cost_ms);
  job.restart_cost_ms = measured.restart_ms.value_or(job.restart_cost_ms);
}

}  // namespace renzan::cluster::local
