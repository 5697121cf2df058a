#pragma once

// Starts and supervises the workers of one run on this machine: N processes (backend gloo), or one
// mpirun that starts them (backend mpi). Either way they get torchrun's variables. Workers do not
// read from the terminal and write to it directly.
//
// SIGTERM, SIGINT, SIGHUP (as SIGTERM) and SIGUSR1 are forwarded to every worker, once each, but
// not to its children; SIGUSR1 only if it has a handler. When a worker dies, the others get a few
// seconds to notice by themselves, then they are stopped. Workers that are finishing after a stop
// request get all the time they need. What workers leave behind is killed when all have ended. No
// worker outlives this process, however it ends, nor do the processes of its group (those of a
// group of their own may; also with mpirun). Call it from the main thread, before other threads
// exist.

#include <string>
#include <vector>

#include "renzan/base/process/signals.h"
#include "renzan/launch/launch_result.h"
#include "renzan/launch/worker_status.h"

namespace renzan {

struct LaunchOptions {
  int workers = 1;
  std::string backend = "gloo";   // or "mpi"; "auto" means gloo
  std::vector<std::string> argv;  // the worker's command line; argv[0] is only its name
  std::string program;            // looked up in PATH; empty: this program
  WorkerProgram kind = WorkerProgram::kRenzan;  // of `program`
  std::vector<std::string> environment;         // "NAME=value", added to the workers' environment
  int restart = 0;                              // passed as RENZAN_RESTART; 0: the first attempt
  double grace_seconds = 5;                     // between a worker's death and stopping the others
  // After this long the workers are asked to stop (SIGTERM, on which they save and end with 75),
  // because more of them are to take their place; 0: never. Put off while a worker does not handle
  // SIGTERM, since its work would be lost.
  double grow_after_seconds = 0;
  double mpirun_patience_seconds = 30;  // as in MpirunWatch
};

// The signals handled for workers: SIGTERM, SIGINT, SIGUSR1, SIGCHLD, and SIGHUP unless nohup
// ignores it.
std::vector<int> LaunchSignals();

// Returns when all workers have ended. `signals` must have been constructed before, from
// LaunchSignals(), and receives the signals sent to this process meanwhile. Throws Error:
// kUnavailable if mpirun is missing, kConfig for a backend without multiple workers, kOsError if
// the OS cannot provide a process or a port.
LaunchResult LaunchLocalWorkers(const LaunchOptions& options, const SignalQueue& signals);

}  // namespace renzan
