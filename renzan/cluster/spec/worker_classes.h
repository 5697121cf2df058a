#pragma once

// A fixed menu of workers, so that jobs fit together on nodes: what a job asks for is rounded up to
// one of them. Pure functions.

#include <map>
#include <string>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {

using WorkerClasses = std::map<std::string, JobSpec::PerWorker>;  // by name

// Gives the job's workers the smallest worker_class that holds what they ask for: that with the
// fewest GPUs, of these the least memory, then the fewest cores. Without any classes nothing
// changes. Throws Error kConfig when none is large enough. `source` stands for the job in messages.
void RoundUpToClass(const WorkerClasses& offered, const std::string& source, JobSpec& spec);

}  // namespace renzan::cluster::spec
