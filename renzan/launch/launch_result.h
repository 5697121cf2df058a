#pragma once

// How one attempt ended: a plain value, so that the restart policy can be a pure function.

#include <string>
#include <vector>

#include "renzan/base/process/process_end.h"

namespace renzan {

struct LaunchResult {
  enum class Kind {
    kAnswer,   // every worker ended with an answer (worker_status.h)
    kStopped,  // workers ended because the launcher got SIGINT, SIGTERM or SIGHUP
    kGrowing,  // workers ended to grow after LaunchOptions::grow_after_seconds
    kFailure,  // at least one worker failed
  };
  Kind kind = Kind::kAnswer;
  // kAnswer: the workers' highest. kStopped: 75 (run it again), or 130 after SIGINT. kGrowing: 75.
  // kFailure: that of the worker that caused the failure, 69 if a signal killed it, 126 or 127 if
  // the program could not be started.
  int exit_status = 0;
  // kFailure: another attempt may succeed, because a worker was killed by a signal, lost a peer, or
  // had too little memory or an I/O error. Other failures (bad data, a wrong configuration, a
  // diverged run) would recur.
  bool transient = false;
  // The launcher got SIGINT, SIGTERM or SIGHUP, whatever the outcome.
  bool stop_requested = false;
  // Workers that were killed by a signal or failed because of the machine (71, 74): not those that
  // lost a peer (69) or were stopped by the launcher. At most 1 with mpirun, which names only one.
  int died = 0;
  // The failure was caused by a worker that the kernel killed because memory ran out.
  bool out_of_memory = false;
  // "worker 2 (pid 1234) was killed by signal 9 (Killed)", "stopped by signal 15 (Terminated)".
  // Empty for kAnswer.
  std::string cause;
  // How each worker ended, by rank; with mpirun, only how mpirun itself ended.
  std::vector<ProcessEnd> ends;
};

// kStopped by `signal`: SIGINT, SIGTERM or SIGHUP.
LaunchResult StoppedBy(int signal);

}  // namespace renzan
