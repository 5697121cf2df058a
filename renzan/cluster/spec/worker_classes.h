#pragma once

// Worker classes: fixed worker sizes to which jobs' worker requests are rounded up, so that jobs
// pack well onto nodes. Pure functions.

#include <map>
#include <string>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {

using WorkerClasses = std::map<std::string, JobSpec::PerWorker>;  // by name

// Gives the job's workers the smallest worker class that is large enough: fewest GPUs, then least
// memory, then fewest cores. Without any classes nothing changes. Throws Error kConfig if none is
// large enough. `source` names the job in messages.
void RoundUpToClass(const WorkerClasses& offered, const std::string& source, JobSpec& spec);

}  // namespace renzan::cluster::spec
