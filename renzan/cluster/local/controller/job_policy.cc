#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

Outputs OutputsOf(const spec::JobSpec& spec) {
  Outputs outputs{
      .artifacts = spec.artifacts, .upload_to = spec.upload_to, .environment = spec.environment};
  if (!spec.artifacts.empty() && spec.artifacts.front() != '/')
    outputs.artifacts = spec.working_directory + "/" + spec.artifacts;
  return outputs;
}

std::string CheckpointDirectoryOf(const spec::JobSpec& spec, const std::string& directory) {
  return spec.checkpoint.directory.empty() ? directory + "/checkpoints" : spec.checkpoint.directory;
}

}  // namespace renzan::cluster::local
