#pragma once

// How a verb that trains or predicts becomes one worker or several.

#include <functional>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/launch/elastic.h"

namespace renzan {

struct WorkerOptions {
  int workers = 1;  // started here, unless a launcher (mpirun, torchrun, srun) has started us
  int threads = 0;  // per worker; 0: the CPUs it may use, shared by this machine's workers
  std::string backend = "auto";
  double timeout_seconds = 60;
  // For workers started here. Without restarts by default; a single worker is this process, which
  // cannot start itself again.
  ElasticOptions elastic;
  std::vector<std::string> environment;  // "NAME=value", for workers started here
  // Called before all else where this process turns out to be a worker, not a launcher.
  std::function<void()> on_worker = [] {};
};

// Either runs `body` as one worker and returns 0, or starts `workers` copies of this command, again
// as `elastic` says, and returns their exit status. `threads` is the resolved number.
int RunWorkers(const WorkerOptions& options,
               const std::function<void(Communicator& comm, int threads)>& body);

}  // namespace renzan
