#pragma once

// How what happens to a gang (gang.h) and how its attempts end (outcome.h) change the facts that
// are recorded of its job. Only Lifecycle (lifecycle.h) uses these functions, and environments that
// take over a running job. They change the values passed to them.

#include <optional>
#include <string>

#include "renzan/cluster/core/engine/job_facts.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// The gang has been started (StartGang) on `placement`.
void BeginAttempt(const Job& job, NamedPlacement placement, JobFacts& facts, AttemptFacts& attempt);

// The gang has been told to stop or to move, or has been evicted, for that reason.
void StopAttempt(const Job& job, const Snapshot& snapshot, const std::string& why, JobFacts& facts,
                 AttemptFacts& attempt);

// A job that has run for this long has run well, unless the cluster's configuration says otherwise.
inline constexpr TimeMs kEarlyFailureMs = 300'000;

// All workers have ended: requeues the gang. An attempt that failed within `early_ms` after its
// start makes the job avoid the node.
struct EndedAttempt {
  Outcome outcome;
  std::string failed_early_on;  // the node; empty: none
};
struct EndRules {
  const RetryPolicy& retries;
  bool cancelled;  // its user has cancelled it
  TimeMs early_ms;
};
EndedAttempt EndAttempt(const AttemptEnd& end, const EndRules& rules, TimeMs now, Job& job,
                        JobFacts& facts, AttemptFacts& attempt);

// The cost of a checkpoint by the latest measurement. A stop that coincides with a regular
// checkpoint looks as if it took no time, so a shorter time than before at most halves it.
TimeMs SteadyCheckpointCost(std::optional<TimeMs> before, TimeMs measured);

// Restores what the facts say has happened to `job`, which is pending. The placements are those of
// the attempt, if there is one. A gang whose target is no longer there as a whole stops instead of
// moving.
void RestoreJob(const JobFacts& facts, const AttemptFacts& attempt, const Placement& placement,
                const Placement& target, Job& job);

}  // namespace renzan::cluster
