#pragma once

// What a simulation says about a policy. Pure functions of its result.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// Exact: percentiles are values that occurred (the smallest that at least so many percent do not
// exceed). Seconds. All zero where there are none.
struct Distribution {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Distribution Summarize(std::vector<double> values);

struct Metrics {
  int64_t jobs = 0, refused = 0, never_ended = 0;
  double makespan_s = 0;  // from the first submission to the end of the last job
  // From submission to end, and all the time a job was pending; of jobs that ended.
  Distribution completion, waiting;
  struct SizeClass {
    std::string
        name;  // GPUs of the whole gang: "1", "2-7", "8", "9-15", ">=16"; "0" if there are any
    Distribution waiting, completion;
  };
  std::vector<SizeClass> by_size;

  // GPU time of work that counted, by GPU time on nodes that were there, over the makespan.
  double utilisation = 0;
  // GPU time held by jobs, whatever for, by GPU time there was until the last submission: without
  // the end, when nothing comes any more.
  double occupancy = 0;
  // GPU time that was free while some job waited, by GPU time there was.
  double idle_while_waiting = 0;
  // Of that idle time, the share during which the head of the line (by priority, then submission)
  // waited for no more GPUs than were free in all, and yet did not start: free GPUs that nobody who
  // is next could use, because they were spread over nodes, kept for another or above a limit.
  double fragmentation = 0;

  int64_t starts = 0, preemptions = 0, drains = 0, losses = 0, resizes = 0,
          checkpoints_requested = 0;
  int64_t most_preemptions_of_a_job = 0;
  int64_t deadlocks = 0;
  double useful_gpu_s = 0;
  double lost_gpu_s = 0;  // work that had to be repeated
  double overhead_gpu_s =
      0;  // GPUs held while saving, starting again, or waiting for a gang's rest
  // Of all GPU time held by jobs.
  double lost_share = 0, overhead_share = 0;
  int64_t nodes_bought = 0, nodes_failed = 0;
  double cost = 0;
  int64_t cycles = 0;
};

Metrics Measure(const SimulationResult& result);

}  // namespace renzan::cluster::simulate
