#pragma once

// What the checks behind ValidateDecisions() share: one cycle's decisions by job, and the resources
// that jobs hold at the moments that matter. Deliberately simple, and shares no code with the
// scheduler except labels.h, placements.h and (for the nodes that a job may use) avoidance.h, which
// CheckAvoidance checks.

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::check {

struct Violation {
  std::string what;
  // A job whose start, growth or preemptions contribute to the violation: without them it might not
  // arise. 0: no such job is known.
  JobId job = 0;
  // It may be a consequence of withholding another decision, because of a faulty job or node.
  bool may_follow = false;
};

struct CheckContext {
  const Snapshot& snapshot;
  const Decisions& decisions;
  std::map<JobId, const Start*> starts;
  std::map<JobId, const Stop*> stops;
  std::map<JobId, const Resize*> resizes;
  std::map<JobId, const Wait*> waits;
  std::vector<Violation> violations;

  template <typename... Args>
  void Report(fmt::format_string<Args...> format, Args&&... args) {
    ReportFor(0, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void ReportFor(JobId job, fmt::format_string<Args...> format, Args&&... args) {
    violations.push_back({fmt::format(format, std::forward<Args>(args)...), job});
  }
  template <typename... Args>
  void ReportConsequence(JobId job, fmt::format_string<Args...> format, Args&&... args) {
    violations.push_back({fmt::format(format, std::forward<Args>(args)...), job, true});
  }
};

// "" if the placement is well formed (sorted, every node once and known, workers >= 1), else what
// is wrong.
std::string FormFault(const Snapshot& snapshot, const Placement& placement);
// "" if it is well formed and new workers satisfy the required labels and topology. Workers already
// in `had` may stay where they are: labels can be edited while a job runs.
std::string PlacementFault(const Snapshot& snapshot, const Job& job, const Placement& placement,
                           const Placement& had = {});

// Resources held on every node.
using Held = std::vector<Resources>;
// Now, before anything is decided.
Held HeldNow(const Snapshot& snapshot);
// After the decisions have been carried out, while stopping jobs still hold their resources.
Held HeldAfterDecisions(const CheckContext& context);
// After all stopping jobs have stopped.
Held HeldAfterStops(const CheckContext& context);

// The workers that count towards quotas: kRunning, and kResizing with its target. 0 for others.
int CountedWorkers(const Job& job);
// Whether its checkpoint fits into its grace period.
bool Saves(const Job& job);
// Whether any of its workers, now or after its resize, is on a draining node; the second, on one
// with a time at which it goes away.
bool IsOnDrainingNode(const Snapshot& snapshot, const Job& job);
bool IsOnNodeThatGoesAway(const Snapshot& snapshot, const Job& job);
// Whether some queue is guaranteed any of a kind of resource.
std::array<bool, kMaxResources> GuaranteedToAny(const Snapshot& snapshot);
// Whether `whole` is the queue, its parent, that one's parent, or so on.
bool IsPartOf(const Snapshot& snapshot, int queue, int whole);
// What counts of the queue beside the other: itself or, while the other is no part of its parent,
// that parent.
int WhatCounts(const Snapshot& snapshot, int queue, int other);
// Whether the user's cap lets the pending job start before anybody is stopped. Which jobs are
// within a guarantee is decided then: the next cycle sees what the stops of this one leave of the
// cap.
bool CapAllowsBeforeStops(const Snapshot& snapshot, const Job& job);
// Resources of `workers` workers of the job.
Resources Of(const Snapshot& snapshot, const Job& job, int workers);

// The checks, one per file; each adds to the violations. The others require that CheckForm has
// found none.
void CheckForm(CheckContext& context);  // ids, indices, placements, no two decisions about one job
void CheckRoom(CheckContext& context);  // over-allocation, node states, scaling
// No worker starts on a node that its job excludes; nor, while others in service could serve the
// job, on one that it avoids. `observed`: the snapshot before avoidance is applied.
void CheckAvoidance(const Snapshot& observed, CheckContext& context);
void CheckQuotas(CheckContext& context);         // limits and caps
void CheckRights(CheckContext& context);         // which job may preempt which
void CheckPreemptorsFit(CheckContext& context);  // preemptors fit once their victims have stopped
void CheckNeedlessWaits(CheckContext& context);  // no job waits for what is its by right
void CheckKeptRoom(CheckContext& context);       // what is kept for a job stays so
void CheckFairShare(CheckContext& context);      // users who have used less go first

}  // namespace renzan::cluster::check
