#pragma once

// The scheduling policy of a simulation: Renzan's scheduler, or a baseline to compare it with.
// Baselines get input that Renzan's scheduler does not (such as exact run times), and may place
// part of a gang, which it never does. Not thread-safe.

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

// A pending job, with the fields that most decisions need.
struct PendingJob {
  int priority = 0;
  TimeMs submitted = 0;
  JobId job = 0;
  int request = 0, min_workers = 0, max_workers = 0;

  // Goes first: by priority, then submission.
  bool operator<(const PendingJob& other) const {
    if (priority != other.priority) return priority > other.priority;
    if (submitted != other.submitted) return submitted < other.submitted;
    return job < other.job;
  }
};

struct PolicyInput {
  const Snapshot& snapshot;
  std::span<const PendingJob> pending;  // in order
  std::span<const Resources> free;      // by node; zero where it is not ready
  // Placed workers of partially placed jobs, which do not run yet.
  const std::map<JobId, Placement>& held;
  // How long a pending job would run with that many workers, and when a running job will end. Real
  // schedulers cannot know this; only "backfill-easy" and "srpt-oracle" use it.
  const std::function<TimeMs(JobId, int workers)>& run_time;
  const std::function<TimeMs(JobId)>& end_time;
  // The snapshot with Job::run_time_now.
  const std::function<Snapshot()>& for_estimates;
};

// Places workers of a pending job, which starts once all its max_workers are placed.
struct Hold {
  JobId job;
  int node;
  int workers;
};

// Removes workers of a running or partially placed job; its other workers stay placed and wait.
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
  // Decides again, for comparison. Not a cycle of its own: watchers of the policy ignore it.
  virtual PolicyOutput DecideAgain(const PolicyInput& input) { return Decide(input); }
  // Whether its decisions satisfy the invariants of core/validate/invariants.h and depend only on
  // the snapshot. With SimulatorOptions::check both are checked; for others only the cluster is.
  virtual bool IsScheduler() const { return false; }
  // Whether it buys and returns nodes. Otherwise every pool has all its nodes from the beginning.
  virtual bool ScalesPools() const { return false; }
};

// Renzan's scheduler, or any function with the same interface.
using Policy = std::function<Decisions(const Snapshot&)>;
std::unique_ptr<SimulatedPolicy> MakeScheduler(Policy policy);

// Baselines. None supports quotas, user caps or topology. All respect required labels, stop jobs
// that checkpoint on draining nodes, and, except Kubernetes, use best fit.

// Strict FIFO, as Kueue's StrictFIFO: no job overtakes the head of the pending queue.
std::unique_ptr<SimulatedPolicy> MakeFifo();
// Any job that fits starts, in order, as with Kueue's BestEffortFIFO.
std::unique_ptr<SimulatedPolicy> MakeBackfill();
// EASY backfilling with exact run times, as with Slurm's backfill plugin and perfect time limits:
// the head of the queue gets a reservation, and jobs overtake it only if they do not delay it.
std::unique_ptr<SimulatedPolicy> MakeEasyBackfill();
// kube-scheduler with its default plugins; kubernetes.cc describes the model.
std::unique_ptr<SimulatedPolicy> MakeKubernetes(uint64_t seed);

// Preemptive baselines, work-conserving and gang by gang: Tiresias's order, without its profiling;
// and shortest remaining time first, with exact run times, which no real scheduler has.
std::unique_ptr<SimulatedPolicy> MakeLeastAttainedService();
std::unique_ptr<SimulatedPolicy> MakeShortestRemainingTime();

// By name; Error kUsage suggests the nearest and lists all. `options` are for "renzan".
std::unique_ptr<SimulatedPolicy> MakePolicy(const std::string& name, uint64_t seed,
                                            const ScheduleOptions& options = {});
const std::vector<std::string>& PolicyNames();

}  // namespace renzan::cluster::simulate
