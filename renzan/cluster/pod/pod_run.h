#pragma once

// `renzan pod-run`: runs the command of a container as one worker of a gang, and keeps the launch
// contract for it as the supervisor does on one machine. Works as process 1 of the container, and
// as any other.
//
// The command leads a session of its own and reads from /dev/null. SIGTERM, SIGINT, SIGHUP, SIGUSR1
// and SIGUSR2 are passed on to it, not to its children; SIGUSR1 only if it handles it. When it has
// ended, what it left behind is killed, and what it leaves is uploaded where RENZAN_UPLOAD_TO says:
// its output, and its artifacts; of worker 0 also the run directory. For the main thread of a
// program without other threads.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/pod/master_name.h"

namespace renzan::cluster::pod {

struct PodRunOptions {
  std::vector<std::string> command;  // not empty; the first word is looked up in PATH
  std::vector<std::string>
      environment;  // "NAME=value": the command's, with the contract's variables
  std::optional<double> grace_seconds;  // instead of RENZAN_GRACE_SECONDS
  MasterWait master;                    // limit 0: the command starts at once
  ResolveName resolve = SystemResolve;
  // Where the command's stderr goes. It passes through a pipe, so that the last line of a failing
  // command is known, unless this is a terminal, which the command should see as one.
  int stderr_fd = 2;
  int stdout_fd = 1;  // likewise, but through a pipe only if the output is uploaded
  // Copies `path`, a file or directory, to the place `to` in a store. Throws Error; kTempFail once
  // stop() is true, which it is shortly before SIGKILL.
  using Upload = std::function<void(const std::string& path, const std::string& to,
                                    const std::function<bool()>& stop)>;
  Upload upload;
  // The time between looks for checkpoint requests that inotify does not report.
  double seconds_between_looks = 5;
};

// Returns the exit status for the container: the command's, 128 + signal if a signal ended it, 126
// or 127 if it cannot be started, that of the error if a command that succeeded has output that
// cannot be uploaded, 75 (after SIGINT 130) if a stop was requested before it started.
// Throws Error kUsage, kUnavailable (the master's name does not resolve), kCantCreate, kOsError.
// The termination message is written in any case.
int PodRun(const PodRunOptions& options);

}  // namespace renzan::cluster::pod
