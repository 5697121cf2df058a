#include "renzan/cluster/core/preempt/cadence.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace renzan::cluster {
namespace {

constexpr double kMsPerHour = 3'600'000;
constexpr TimeMs kShortest = 10'000;

double HazardOf(const Snapshot& snapshot, const Node& node) {
  return node.pool < 0 ? 0 : snapshot.pools[node.pool].interruptions_per_hour;
}

bool MayBeInterrupted(const Snapshot& snapshot, const Node& node) {
  return node.spot || HazardOf(snapshot, node) > 0;
}

// Interruptions per hour of any of the job's nodes; none if no node may be interrupted.
std::optional<double> Hazard(const Snapshot& snapshot, const Job& job) {
  bool may_be_interrupted = false;
  double hazard = 0;
  for (const Placed& placed : job.placement) {
    const Node& node = snapshot.nodes[placed.node];
    may_be_interrupted |= MayBeInterrupted(snapshot, node);
    hazard += HazardOf(snapshot, node);
  }
  if (!may_be_interrupted) return std::nullopt;
  return hazard;
}

}  // namespace

TimeMs CheckpointInterval(TimeMs cost, double interruptions_per_hour, TimeMs longest) {
  if (interruptions_per_hour <= 0) return longest;
  const double interval =
      std::sqrt(2 * static_cast<double>(cost) / (interruptions_per_hour / kMsPerHour));
  if (interval >= static_cast<double>(longest)) return longest;
  // Where the time between interruptions is close to the cost of a checkpoint, the formula would
  // make the job do nothing but checkpoint.
  return std::min(longest, std::max({static_cast<TimeMs>(interval), cost, kShortest}));
}

void RequestCheckpoints(const Snapshot& snapshot, TimeMs longest, Decisions& decisions) {
  if (std::none_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                   [&](const Node& node) { return MayBeInterrupted(snapshot, node); }))
    return;
  std::set<JobId> leaving;  // these save their work anyway
  for (const Stop& stop : decisions.stops) leaving.insert(stop.job);
  for (const Resize& resize : decisions.resizes) leaving.insert(resize.job);
  for (const Job& job : snapshot.jobs) {
    if (job.state != JobState::kRunning || !job.checkpoints || leaving.count(job.id) > 0) continue;
    const std::optional<double> hazard = Hazard(snapshot, job);
    if (!hazard) continue;
    const TimeMs saved = std::max(job.started, job.last_checkpoint.value_or(job.started));
    const TimeMs bound = std::min(longest, job.max_checkpoint_interval_ms);
    const TimeMs due = saved + CheckpointInterval(job.checkpoint_cost_ms, *hazard, bound);
    if (due <= snapshot.now)
      decisions.checkpoints.push_back(job.id);
    else
      decisions.look_again = std::min(decisions.look_again, due);
  }
}

}  // namespace renzan::cluster
