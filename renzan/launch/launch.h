#pragma once

// Starts the workers of one run on this machine and looks after them: N copies of this program that
// find each other through torchrun's variables (backend gloo), or one mpirun (backend mpi). Workers
// read nothing from the terminal and write straight to it.
//
// SIGTERM, SIGINT, SIGHUP (as SIGTERM) and SIGUSR1 are passed on to every worker, once each. When a
// worker dies, the others have a few seconds to notice by themselves, then they are ended. Workers
// that finish because they were asked to have all the time they need. No worker outlives this
// process, however it ends. Call it from the main thread, before other threads exist.

#include <string>
#include <vector>

#include "renzan/base/process/signals.h"
#include "renzan/launch/launch_result.h"

namespace renzan {

struct LaunchOptions {
  int workers = 1;
  std::string backend = "gloo";          // or "mpi"; "auto" means gloo
  std::vector<std::string> argv;         // the worker's command line; argv[0] is only its name
  std::string program;                   // what to run; empty means this program
  std::vector<std::string> environment;  // "NAME=value", added to ours for the workers
  int restart = 0;                       // workers see it as RENZAN_RESTART; 0: the first attempt
  double grace_seconds = 5;              // between a worker's death and the end of the others
};

// The signals that concern workers: SIGTERM, SIGINT, SIGUSR1, SIGCHLD, and SIGHUP unless nohup
// ignores it.
std::vector<int> LaunchSignals();

// Returns when all workers are gone. `signals`, of LaunchSignals(), must have been made
// before, and receives what is sent to this process meanwhile. Throws Error: kUnavailable if mpirun
// is missing, kConfig for a backend that cannot carry workers, kOsError if the machine refuses a
// process or a port.
LaunchResult LaunchLocalWorkers(const LaunchOptions& options, const SignalQueue& signals);

}  // namespace renzan
