#pragma once

// Metrics of a simulation. Pure functions of its result.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// In seconds; all zero if there are no values. Percentiles are exact, by the nearest-rank method.
struct Distribution {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Distribution Summarize(std::vector<double> values);

// Jobs are told apart by the GPUs of the whole gang.
struct SizeRange {
  const char* name;
  int64_t least, most;
  bool Contains(int64_t gpus) const { return gpus >= least && gpus <= most; }
};
inline constexpr std::array<SizeRange, 6> kSizeRanges = {{{"0", 0, 0},
                                                          {"1", 1, 1},
                                                          {"2-7", 2, 7},
                                                          {"8", 8, 8},
                                                          {"9-15", 9, 15},
                                                          {">=16", 16, kUnlimited}}};

struct Metrics {
  int64_t jobs = 0, rejected = 0, never_ended = 0;
  double makespan_s = 0;  // from the first submission to the end of the last job
  // From submission to end, and total time pending; for jobs that ended.
  Distribution completion, waiting;
  struct SizeClass {
    std::string name;  // as in kSizeRanges; "0" only if there are any
    Distribution waiting, completion;
  };
  std::vector<SizeClass> by_size;
  int64_t longest_waiting_job = 0;  // its id; 0: none waited

  // GPU time of useful work by available GPU time, over the makespan.
  double utilisation = 0;
  // GPU time held by jobs for any purpose by available GPU time, until the last submission, so that
  // the final drain of the queue does not count.
  double occupancy = 0;
  // GPU time free while some job was pending, by available GPU time.
  double idle_while_waiting = 0;
  // The share of that idle time during which the head of the pending queue (by priority, then
  // submission) needed no more GPUs than were free in total, but could not start because they were
  // spread over nodes, reserved, or beyond a limit.
  double fragmentation = 0;

  int64_t starts = 0, preemptions = 0, drains = 0, node_failures = 0, resizes = 0,
          failures = 0,  // of jobs' own
      failed_jobs = 0,   // among those that ended
      checkpoints_requested = 0;
  int64_t most_preemptions_of_a_job = 0;
  int64_t deadlocks = 0;
  double useful_gpu_s = 0;
  double lost_gpu_s = 0;  // work that had to be repeated
  // GPUs held while checkpointing, restarting, or waiting for the rest of a gang.
  double overhead_gpu_s = 0;
  // Shares of all GPU time held by jobs.
  double lost_share = 0, overhead_share = 0;
  // Of the time held by one job, the largest share of both together, among jobs that were not
  // interrupted by failing or draining nodes.
  double largest_share_of_a_job = 0;
  int64_t nodes_bought = 0, nodes_failed = 0;
  double cost = 0;
  int64_t cycles = 0;
};

Metrics Measure(const SimulationResult& result);

}  // namespace renzan::cluster::simulate
