#pragma once

// The jobs of a Slurm cluster, as `sacct --parsable2` prints them: fields separated by '|', with a
// line of their names.

#include <string>

#include "renzan/cluster/simulate/trace.h"

namespace renzan::cluster::simulate {

// Needs Submit, Elapsed or ElapsedRaw, and AllocTRES or ReqTRES; Account (the queue; otherwise
// Partition), User, JobName and JobID are used where they are. Leaves out, and says so, job steps,
// jobs without GPUs and jobs that have not run. Throws Error kData "name:line: ..." for the first
// invalid line.
Workload ReadSacct(const NextLine& next_line, const std::string& name, const TraceOptions& options);

}  // namespace renzan::cluster::simulate
