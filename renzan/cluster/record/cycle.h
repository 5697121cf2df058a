#pragma once

// A scheduling cycle: everything that the scheduler was given, and its decisions.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::record {

// What users call the job. `ns` is empty where jobs have no namespace, both where only numbers are
// known.
struct JobName {
  std::string ns, name;
};

// A cycle by references to its owner's data, before the decisions are carried out.
struct CycleView {
  int64_t number;  // counted from 1 by each leader
  const ScheduleOptions& options;
  const Snapshot& snapshot;
  const Decisions& decisions;  // those that passed validation
  const std::function<JobName(JobId)>& name_of;
};

// A copy of a cycle.
struct Cycle {
  int64_t number = 0;
  ScheduleOptions options;
  Snapshot snapshot;
  Decisions decisions;
  std::map<JobId, JobName> names;  // of the jobs in the snapshot that have one
};

Cycle CopyOf(const CycleView& cycle);

// Calls `use` with the view of a copy.
template <typename Use>
auto WithView(const Cycle& cycle, const Use& use) {
  const std::function<JobName(JobId)> name_of = [&](JobId id) {
    const auto at = cycle.names.find(id);
    return at == cycle.names.end() ? JobName() : at->second;
  };
  return use(CycleView{cycle.number, cycle.options, cycle.snapshot, cycle.decisions, name_of});
}

// Whether the decisions change anything: start, stop, reserve, buy. Letting jobs wait does not.
bool Decides(const Snapshot& snapshot, const Decisions& decisions);

}  // namespace renzan::cluster::record
