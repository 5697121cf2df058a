#pragma once

// A cluster under virtual time: jobs come, run and end, nodes are taken away and come back, and a
// policy decides after everything that happens. The same input gives the same result. One thread.
//
// The model: a job does its work at a speed of its workers by max_workers. A stop takes its
// checkpoint cost and loses nothing if it checkpoints and the cost is within its grace; otherwise
// everything is lost since its last checkpoint, or since its start if it makes none. The same is
// lost when a node vanishes. Whoever has saved work needs its restart cost to go on. Jobs that
// checkpoint also do so in the background, every checkpoint_interval_ms, without slowing down.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/simulated_cluster.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

struct SimulatorOptions {
  uint64_t seed = 1;                 // of interruptions
  TimeMs min_between_cycles_ms = 0;  // 0: a cycle at every moment at which something happens
  TimeMs notice_ms = 0;              // of interruptions (Pool::interruptions_per_hour); 0: none
  // Until a node that was taken away is replaced where its pool must have it; its boot time if that
  // is longer.
  TimeMs replace_ms = 600'000;
  // A deadlock that lasts so long is broken up: its youngest gang gives up its places.
  TimeMs deadlock_timeout_ms = 3'600'000;
  // Checks the cluster before, and a scheduler's decisions after every cycle, that a repeated cycle
  // decides the same, and that every job ends. Slow.
  bool check = false;
};

// Sums over time: GPU-milliseconds.
struct SimulationTotals {
  TimeMs begin = 0;  // first submission
  TimeMs last_submission = 0;
  TimeMs end = 0;      // of the last job
  double present = 0;  // on nodes that are there
  double busy = 0;     // held by jobs
  double present_until_last_submission = 0, busy_until_last_submission = 0;
  double idle_while_waiting = 0;  // free while some job waits
  double fragmented = 0;  // free while the head of the line waits for no more than is free in all
  double cost = 0;        // of priced nodes, as their pools count it
  int64_t cycles = 0, starts = 0, checkpoints_requested = 0, nodes_bought = 0, nodes_failed = 0;
  int64_t deadlocks = 0;  // broken up
};

struct SimulationResult {
  std::vector<JobRecord> jobs;           // those that were not refused, in order of id
  std::map<JobId, std::string> refused;  // could never run here, and why
  std::vector<JobId> never_ended;
  SimulationTotals totals;
  std::vector<Interval> runs, waits;  // in order of their ends
  std::vector<std::string> queue_names;
  std::vector<std::string> violations;  // checking mode: the first few
};

// Runs the workload to its end. Jobs get the ids 1, 2, ... in the order of the workload. Throws
// Error kConfig for a queue that `cluster` does not have.
SimulationResult Simulate(Snapshot cluster, const Workload& workload, SimulatedPolicy& policy,
                          const SimulatorOptions& options = {});

// Runs the jobs that `cluster` has to their ends. Of the job at place i, work_left[i]
// worker-milliseconds are left to do.
SimulationResult SimulateFrom(Snapshot cluster, const std::vector<int64_t>& work_left,
                              SimulatedPolicy& policy, const SimulatorOptions& options = {});

}  // namespace renzan::cluster::simulate
