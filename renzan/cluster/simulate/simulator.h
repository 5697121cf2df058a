#pragma once

// A discrete-event simulation of a cluster: jobs are submitted, run and end, nodes fail and come
// back, and a policy decides after every event. Deterministic. Single-threaded.
//
// The model: a job works at a speed of workers / max_workers. If it checkpoints within its grace
// period, a stop takes its checkpoint cost and loses nothing. Otherwise it loses all work since its
// last checkpoint, or since its start if it makes none; so does a job whose node fails. A job with
// saved work spends its restart cost before it resumes. Jobs that checkpoint also do so every
// checkpoint_interval_ms, in the background and without slowing down. A job may fail by itself: it
// loses its unsaved work, pauses and is tried again, by the rules of every environment
// (core/engine/lifecycle.h).

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
  TimeMs min_between_cycles_ms = 0;  // 0: a cycle after every event
  TimeMs notice_ms = 0;              // of interruptions (Pool::interruptions_per_hour); 0: none
  // Time to replace an interrupted node if its pool is below its minimum; the pool's boot time if
  // that is longer.
  TimeMs replace_ms = 600'000;
  // A deadlock that lasts this long is resolved: the youngest gang releases what it holds.
  TimeMs deadlock_timeout_ms = 3'600'000;
  // Checks the cluster before every cycle and a scheduler's decisions after it, that a repeated
  // cycle decides the same, and that every job ends. Slow.
  bool check = false;
};

// Sums over time: GPU-milliseconds.
struct SimulationTotals {
  TimeMs begin = 0;  // first submission
  TimeMs last_submission = 0;
  TimeMs end = 0;      // of the last job
  double present = 0;  // on nodes that are up
  double busy = 0;     // held by jobs
  double present_until_last_submission = 0, busy_until_last_submission = 0;
  double idle_while_waiting = 0;  // free while some job waits
  double fragmented = 0;  // free while the head of the queue needs no more than is free in total
  double cost = 0;        // of priced nodes
  int64_t cycles = 0, starts = 0, checkpoints_requested = 0, nodes_bought = 0, nodes_failed = 0;
  int64_t deadlocks = 0;
};

struct SimulationResult {
  std::vector<JobRecord> jobs;            // without rejected ones, in order of id
  std::map<JobId, std::string> rejected;  // jobs that could never run here, and why
  std::vector<JobId> never_ended;
  SimulationTotals totals;
  std::vector<Interval> runs, waits;  // in order of their ends
  std::vector<std::string> queue_names;
  std::vector<std::string> violations;  // with SimulatorOptions::check: the first few
};

// Runs the workload to its end. Jobs get the ids 1, 2, ... in the order of the workload. Throws
// Error kNoInput for a queue that `cluster` does not have.
SimulationResult Simulate(Snapshot cluster, const Workload& workload, SimulatedPolicy& policy,
                          const SimulatorOptions& options = {});

// Runs the jobs of `cluster` to their ends. work_left[i] is what job i still has to do, in
// worker-milliseconds.
SimulationResult SimulateFrom(Snapshot cluster, const std::vector<int64_t>& work_left,
                              SimulatedPolicy& policy, const SimulatorOptions& options = {});

}  // namespace renzan::cluster::simulate
