#pragma once

// What the checks behind ValidateDecisions() share: one cycle's decisions by job, and what its jobs
// hold at the moments that matter. Deliberately naive, and shares nothing with the scheduler but
// the definitions of labels.h and placements.h.

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::check {

struct Cycle {
  const Snapshot& snapshot;
  const Decisions& decisions;
  std::map<JobId, const Start*> starts;
  std::map<JobId, const Stop*> stops;
  std::map<JobId, const Resize*> resizes;
  std::map<JobId, const Wait*> waits;
  std::vector<std::string> violations;

  template <typename... Args>
  void Report(fmt::format_string<Args...> format, Args&&... args) {
    violations.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
};

// "": the placement is well formed (sorted, every node once and known, workers >= 1); else what is
// wrong.
std::string FormFault(const Snapshot& snapshot, const Placement& placement);
// "": it is well formed and keeps the request's labels and required topology where workers are new.
// Those that `had` has already may stay where they are: labels can be edited while a job runs.
std::string PlacementFault(const Snapshot& snapshot, const Job& job, const Placement& placement,
                           const Placement& had = {});

// What is held of every node.
using Held = std::vector<Resources>;
// Now, before anything is decided.
Held HeldNow(const Snapshot& snapshot);
// When the decisions have been carried out and nobody has left yet.
Held HeldAtOnce(const Cycle& cycle);
// When all who are leaving have left.
Held HeldAtLast(const Cycle& cycle);

// The workers that count for quotas: kRunning, and kResizing with its target. 0 for others.
int CountedWorkers(const Job& job);
// Resources of so many workers of the job.
Resources Of(const Snapshot& snapshot, const Job& job, int workers);

// The questions, one a file; each adds to cycle.violations. CheckForm goes first: unless it is
// content the others may not be asked.
void CheckForm(Cycle& cycle);       // ids, indices, placements, no two decisions about one job
void CheckRoom(Cycle& cycle);       // over-allocation, node states, scaling
void CheckQuotas(Cycle& cycle);     // limits and caps
void CheckRights(Cycle& cycle);     // who may stop whom
void CheckNotInVain(Cycle& cycle);  // those for whom others stop will fit

}  // namespace renzan::cluster::check
