#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

RetryPolicy RetryPolicyOf(const spec::JobSpec& spec) {
  return {.retries = spec.retries,
          .backoff_ms = spec.retry_backoff_ms(),
          .timeout_ms = spec.timeout_ms(),
          .saves_on_stop = spec.checkpoint.on_stop};
}

std::string ArtifactsPathOf(const spec::JobSpec& spec) {
  if (spec.artifacts.empty() || spec.artifacts.front() == '/') return spec.artifacts;
  return spec.working_directory + "/" + spec.artifacts;
}

std::string CheckpointDirectoryOf(const spec::JobSpec& spec, const std::string& directory) {
  return spec.checkpoint.directory.empty() ? directory + "/checkpoints" : spec.checkpoint.directory;
}

}  // namespace renzan::cluster::local
