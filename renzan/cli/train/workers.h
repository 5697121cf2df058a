#pragma once

// Runs a command that trains or predicts as one worker or several.

#include <functional>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/launch/elastic.h"

namespace renzan {

struct WorkerOptions {
  int workers = 1;  // to start, unless a launcher (mpirun, torchrun, srun) has started this process
  int threads = 0;  // per worker; 0: share the available CPUs with this machine's workers
  std::string backend = "auto";
  double timeout_seconds = 60;
  // For workers started here; no restarts by default. A single worker is this process, which cannot
  // restart itself.
  ElasticOptions elastic;
  std::vector<std::string> environment;  // "NAME=value", for workers started here
  // Called first if this process starts workers.
  std::function<void()> on_launcher = [] {};
  // Called first if this process is a worker, not a launcher.
  std::function<void()> on_worker = [] {};
};

// Either runs `body` as one worker and returns 0, or starts `workers` copies of this command,
// restarts them according to `elastic`, and returns their exit status. `threads` is the resolved
// number.
int RunWorkers(const WorkerOptions& options,
               const std::function<void(Communicator& comm, int threads)>& body);

}  // namespace renzan
