#pragma once

// What the daemon reads from a job's specification beside what the scheduler sees. Pure.

#include "renzan/cluster/local/outcome.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster {

RetryPolicy RetryPolicyOf(const JobSpec& spec);
// The absolute path of what is to be collected; "" for nothing.
std::string ArtifactsPathOf(const JobSpec& spec);

}  // namespace renzan::cluster
