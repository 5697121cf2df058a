#pragma once

// What schedules in a simulation: our own scheduler, or what it is compared with. Baselines may see
// more than our scheduler does (the line in order, what is free, even how long jobs will run) and
// may do what it never does: place part of a gang. Not thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

// A pending job, with what decides whether to look at it more closely.
struct Waiting {
  int priority = 0;
  TimeMs submitted = 0;
  JobId job = 0;
  int request = 0, min_workers = 0, max_workers = 0;

  // Goes first in the line: by priority, then by submission.
  bool operator<(const Waiting& other) const {
    if (priority != other.priority) return priority > other.priority;
    if (submitted != other.submitted) return submitted < other.submitted;
    return job < other.job;
  }
};

struct PolicyInput {
  const Snapshot& snapshot;
  std::span<const Waiting> line;    // all pending jobs, first in line first
  std::span<const Resources> free;  // of each node; zero where it is not ready
  // Workers of pending jobs that have their place already, but do not run until all have.
  const std::map<JobId, Placement>& held;
  // How long a pending job would run with so many workers, and until when a running one will. Real
  // schedulers do not know it; only policies that call themselves oracles ask.
  const std::function<TimeMs(JobId, int workers)>& run_time;
  const std::function<TimeMs(JobId)>& end_time;
};

// A place taken for workers of a pending job. It starts when all its max_workers have one.
struct Hold {
  JobId job;
  int node;
  int workers;
};

// Workers of a running or pending job lose their place; the others keep theirs and wait for them.
struct Evict {
  JobId job;
  int node;
  int workers;
};

struct PolicyOutput {
  Decisions decisions;
  std::vector<Hold> holds;
  std::vector<Evict> evicts;
};

class SimulatedPolicy {
 public:
  virtual ~SimulatedPolicy() = default;
  virtual PolicyOutput Decide(const PolicyInput& input) = 0;
  // Its decisions keep what core/invariants.h promises, and are a function of the snapshot alone:
  // both are checked when asked for. Otherwise only the cluster itself is.
  virtual bool IsScheduler() const { return false; }
  // Buys nodes and gives them back. Otherwise every pool has all its nodes from the beginning.
  virtual bool ScalesPools() const { return false; }
};

// Our scheduler, or any function like it.
using Policy = std::function<Decisions(const Snapshot&)>;
std::unique_ptr<SimulatedPolicy> MakeScheduler(Policy policy);

// Baselines. None knows quotas, user caps or topology; all keep required labels, stop jobs that
// checkpoint on nodes that are about to go, and place each worker where least stays free, unless
// they say otherwise.

// Strict first in, first out: nobody overtakes the head of the line.
std::unique_ptr<SimulatedPolicy> MakeFifo();
// Whoever fits starts, in order: what schedulers do without estimates of run times.
std::unique_ptr<SimulatedPolicy> MakeBackfill();
// EASY backfilling by an oracle: the head of the line gets a reservation for when it can start, and
// others overtake only where they do not delay it. It knows how long every job will run, exactly.
std::unique_ptr<SimulatedPolicy> MakeEasyBackfill();
// Workers one by one in the order of the line wherever there is room: gangs wait for their last
// worker while the others hold their places.
std::unique_ptr<SimulatedPolicy> MakeFifoWithoutGangs();
// kube-scheduler with its default plugins (kubernetes.cc says what of it is modelled).
std::unique_ptr<SimulatedPolicy> MakeKubernetes(uint64_t seed);

// By name; Error kUsage names the nearest, and all there are. `options` are for our own.
std::unique_ptr<SimulatedPolicy> MakePolicy(const std::string& name, uint64_t seed,
                                            const ScheduleOptions& options = {});
const std::vector<std::string>& PolicyNames();

}  // namespace renzan::cluster::simulate
