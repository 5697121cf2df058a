#pragma once

// How one start of all workers ended: a plain value, so that a policy can be a pure function of it.

#include <string>

namespace renzan {

struct LaunchResult {
  enum class Kind {
    kAnswer,   // every worker ended by itself with 0, 1 ("a comparison differs") or 75 ("stopped")
    kStopped,  // workers ended because the launcher was sent SIGINT, SIGTERM or SIGHUP
    kFailure,  // at least one worker failed
  };
  Kind kind = Kind::kAnswer;
  // kAnswer: the highest of the workers'. kStopped: 75 (run me again), or 130 after SIGINT.
  // kFailure: that of the worker that is the cause, 69 if a signal killed it.
  int exit_status = 0;
  // The launcher was sent SIGINT, SIGTERM or SIGHUP, whatever came of it.
  bool stop_requested = false;
  // Workers that a signal killed or that the machine failed (71, 74), of their own accord: not the
  // victims that lost a peer (69) and not those that the launcher ended. Below mpirun at most 1,
  // since it names only one.
  int died = 0;
  // "worker 2 (pid 1234) was killed by signal 9 (Killed)", "stopped by signal 15 (Terminated)".
  // Empty for kAnswer.
  std::string cause;
};

// kStopped by `signal`: SIGINT, SIGTERM or SIGHUP.
LaunchResult StoppedBy(int signal);

}  // namespace renzan
