#include "renzan/cluster/local/controller/measured.h"

#include <fmt/format.h>

#include <algorithm>

namespace renzan::cluster::local {

std::optional<TimeMs> CheckpointTime(const Measured& measured) {
  if (!measured.killed_after_ms) return measured.checkpoint_ms;
  return std::max(*measured.killed_after_ms + 1, measured.checkpoint_ms.value_or(0));
}

std::string SlowCheckpointText(const Measured& measured, TimeMs grace_ms) {
  const std::optional<TimeMs> time = CheckpointTime(measured);
  if (!time || *time <= grace_ms) return "";
  const double seconds = static_cast<double>(*time) / 1000;
  return fmt::format(
      "saving its work takes {} {} s, longer than its grace period of {} s: when it is stopped, "
      "the work since its last checkpoint is lost. Submit it with a longer `grace`",
      measured.killed_after_ms ? "more than" : "about", fmt::format("{:.3g}", seconds),
      static_cast<double>(grace_ms) / 1000);
}

void ApplyMeasured(const Measured& measured, Job& job) {
  job.checkpoint_cost_ms = CheckpointTime(measured).value_or(job.checkpoint_cost_ms);
  job.restart_cost_ms = measured.restart_ms.value_or(job.restart_cost_ms);
}

}  // namespace renzan::cluster::local
