#pragma once

// What the daemon reads from a job's specification, besides what the scheduler sees. Pure.

#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

RetryPolicy RetryPolicyOf(const spec::JobSpec& spec);
// The absolute path of the artifacts to collect; "" if there are none.
std::string ArtifactsPathOf(const spec::JobSpec& spec);
// Where the job's checkpoints are; `directory`: the job's own.
std::string CheckpointDirectoryOf(const spec::JobSpec& spec, const std::string& directory);

}  // namespace renzan::cluster::local
