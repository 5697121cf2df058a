#pragma once

// Starts one worker: a process in a new session that is killed when we end. For a single-threaded
// process.

#include <sys/types.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "renzan/base/process/start_failure.h"
#include "renzan/base/resource_limits.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {

struct WorkerCommand {
  std::vector<std::string> argv;         // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_directory;
  JobUser user;
  int output_fd = -1;        // becomes stdout and stderr
  std::vector<int> cgroups;  // as ChildOptions::cgroups
  mode_t umask = 022;
  ResourceLimits limits;        // those not named, or above our hard limits, are ours
  std::optional<int> niceness;  // unset: ours
};

// Returns the process id once exec has succeeded, or why it failed. The worker is preferred by the
// kernel's out-of-memory killer. Throws Error kOsError if no process can be created.
std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& command);

}  // namespace renzan::cluster::local
