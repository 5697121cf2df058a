#pragma once

// Recorded workloads: CSV (trace_values.h), with a line of column names. Without a mapping of
// columns the format is the Philly trace's: timestamp,duration,num_gpus,gpu_time,cluster
// (submission in UTC, seconds, GPUs, GPU-seconds, virtual cluster). Not thread-safe.

#include <optional>
#include <string>

#include "renzan/cluster/simulate/trace_columns.h"
#include "renzan/cluster/simulate/trace_lines.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

// A time, drawn for each job, log-uniformly between these.
struct TimeRange {
  TimeMs least, most;
};

struct TraceOptions {
  int64_t gpus_per_node = 8;
  Resources share_of_one_gpu;  // see ShareOfOneGpu
  size_t limit = 0;            // only the first jobs to be submitted; 0: all
  // The share of jobs that checkpoint, drawn by `seed`: the trace does not say which do.
  double checkpoint_share = 1;
  // How long a job takes to save its work, and from a restart until it is back where it stopped:
  // drawn by `seed`. Each job's grace period is at least as long as it takes to save.
  TimeRange save_ms = {5'000, 5'000}, restart_ms = {30'000, 30'000};
  uint64_t seed = 1;
  std::optional<TraceColumns> columns;  // none: the Philly trace's
};

inline constexpr int64_t kMostGpusOfAJob = 1'000'000;

// Gives the job as many workers as its GPUs need.
void SetGpus(int64_t gpus, const TraceOptions& options, WorkloadJob& job);

// Sorts and limits the jobs, lets time begin with the first, and draws what a trace does not say.
void FinishTrace(Workload& jobs, const TraceOptions& options);

// Reads a whole trace. Time begins with the first submission. Of the Philly trace, each virtual
// cluster becomes a queue with one user. Throws Error kData "name:line: ..." for the first invalid
// line.
Workload ReadTrace(const NextLine& next_line, const std::string& name, const TraceOptions& options);

}  // namespace renzan::cluster::simulate
