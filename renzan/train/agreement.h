#pragma once

// What all workers must have in common. Each worker reads its own files on its own machine; where
// they differ, replicas would drift apart silently. Every rank makes the same calls.

#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/train/config.h"

namespace renzan {

// Throws kConfig naming the worker whose `value` is not worker 0's. `what` names the thing,
// `advice` what to do.
void CheckWorkersAgree(Communicator& comm, const std::string& what, const std::string& value,
                       const std::string& advice);

// More workers than virtual workers, another configuration (beyond where and how fast it runs),
// another instruction set class, library or program version: kConfig.
void CheckSameRun(Communicator& comm, const TrainConfig& config, const std::string& isa);

}  // namespace renzan
