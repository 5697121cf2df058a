#pragma once

// Recorded workloads. A format is told by the first line; so far there is one: the Philly trace in
// the form timestamp,duration,num_gpus,gpu_time,cluster (submission in UTC, seconds, GPUs,
// GPU-seconds, virtual cluster). Not thread-safe.

#include <functional>
#include <string>
#include <string_view>

#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

// Gives the next line without its end; false after the last one.
using NextLine = std::function<bool(std::string_view* line)>;

struct TraceOptions {
  int64_t gpus_per_node = 8;
  Resources share_of_one_gpu;  // see ShareOfOneGpu
  size_t limit = 0;            // only so many jobs, the first to be submitted; 0: all
  // Traces do not tell which jobs could checkpoint: so large a share of them does, drawn by `seed`.
  double checkpoint_share = 1;
  uint64_t seed = 1;
};

// Reads a whole trace; time begins with its first submission, a virtual cluster becomes a queue
// with one user. Throws Error kData "name:line: ..." for the first line that is not as it must be.
Workload ReadTrace(const NextLine& next_line, const std::string& name, const TraceOptions& options);

}  // namespace renzan::cluster::simulate
