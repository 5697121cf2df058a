#pragma once

// Starts the workers of one run on this machine and looks after them: N copies of this program that
// find each other through torchrun's variables (backend gloo), or one mpirun (backend mpi). Workers
// read nothing from the terminal and write straight to it.
//
// SIGTERM, SIGINT, SIGHUP (as SIGTERM) and SIGUSR1 are passed on to every worker, once each. When a
// worker dies, the others have a few seconds to notice by themselves, then they are ended. No
// worker outlives this process, however it ends. Call it from the main thread, before other threads
// exist.

#include <string>
#include <vector>

namespace renzan {

struct LaunchOptions {
  int workers = 1;
  std::string backend = "gloo";   // or "mpi"; "auto" means gloo
  std::vector<std::string> argv;  // the worker's command line; argv[0] is only its name
  std::string program;            // what to run; empty means this program
  double grace_seconds = 5;       // between a worker's death and the end of the others
};

// Returns when all workers are gone: 0 if each of them ended with 0, else the exit status of the
// one that failed first (69 if a signal killed it), which one line on stderr names. 1, "a
// comparison differs", and 75, "stopped on request", are no failures; the highest is returned if
// nobody fails. If workers end because this process was sent SIGINT, SIGTERM or SIGHUP, one line
// says so and 128 + signal is returned, as a shell does. Throws Error (kUnavailable) if mpirun is
// missing.
int LaunchLocalWorkers(const LaunchOptions& options);

}  // namespace renzan
