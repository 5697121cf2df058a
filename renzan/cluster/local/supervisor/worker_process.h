#pragma once

// Starts one worker: a process in a session of its own that cannot outlive us. For a process with
// one thread.

#include <sys/types.h>

#include <string>
#include <variant>
#include <vector>

#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {

struct WorkerCommand {
  std::vector<std::string> argv;         // argv[0] is looked for in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_directory;
  JobUser user;
  int output_fd = -1;  // becomes stdout and stderr
};

// As a shell says it: 127 for a program that does not exist, 126 for whatever else hinders.
struct StartFailure {
  int exit_code = 126;
  std::string message;  // "program 'trian' is not in PATH (/usr/bin:/bin)"
};

// Returns the process id once the program has taken over the process, or why it could not; then
// nothing is left. No resource limits are set: the worker has those that we have. Its umask is 022.
// In a shortage of memory the kernel kills it rather than us. Throws Error kOsError when the
// machine has no room for one more process.
std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& command);

}  // namespace renzan::cluster::local
