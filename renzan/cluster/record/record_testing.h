#pragma once

// Cycles for tests.

#include <fmt/format.h>

#include "renzan/cluster/core/testing/random_snapshot.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

// A cycle on this snapshot, whose jobs are called a/1, a/2, ...
inline Cycle CycleOn(Snapshot snapshot, int64_t number = 1, ScheduleOptions options = {}) {
  Decisions decisions = Validate(snapshot, Schedule(snapshot, options)).decisions;
  Cycle cycle{.number = number,
              .options = std::move(options),
              .snapshot = std::move(snapshot),
              .decisions = std::move(decisions),
              .names = {}};
  for (const Job& job : cycle.snapshot.jobs) cycle.names[job.id] = {"a", std::to_string(job.id)};
  return cycle;
}

inline Cycle RandomCycle(uint64_t seed) {
  return CycleOn(RandomSnapshot(seed), static_cast<int64_t>(seed));
}

}  // namespace renzan::cluster::record
