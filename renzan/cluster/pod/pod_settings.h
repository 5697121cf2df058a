#pragma once

// What a pod's environment contains: the launch contract's variables, as the controller sets them.
// Pure functions.

#include <optional>
#include <string>
#include <vector>

namespace renzan::cluster::pod {

struct PodSettings {
  int rank = 0, world_size = 1;         // RANK, WORLD_SIZE
  std::string master_addr;              // MASTER_ADDR; empty: none
  std::optional<double> grace_seconds;  // RENZAN_GRACE_SECONDS
  std::string run_dir;                  // RENZAN_RUN_DIR; empty: none
  int attempt = 0;                      // RENZAN_ATTEMPT
  std::string upload_to;                // RENZAN_UPLOAD_TO, "s3://bucket/prefix"; empty: nowhere
  std::string artifacts;                // RENZAN_ARTIFACTS, a directory; empty: none
  // RENZAN_POD_INFO: where a downward-API volume has the pod's annotations.
  std::string pod_info = "/etc/renzan/pod";
};

// The environment's entries are "NAME=value". An empty variable counts as not set. Throws Error
// kUsage.
PodSettings ReadPodSettings(const std::vector<std::string>& environment);

// RENZAN_TERMINATION_LOG: where the kubelet reads the container's termination message.
std::string TerminationLogOf(const std::vector<std::string>& environment);

// Replaces the variable, or adds it.
void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value);

}  // namespace renzan::cluster::pod
