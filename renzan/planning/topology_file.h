#pragma once

// A description of machines for plans: hosts, workers, memory and rates.
//
//   hosts: 16
//   workers_per_host: 8
//   memory_gib: 40          # per worker
//   matrix_gflops: 10000    # per worker, and so on
//   inter_host_gbs: 12.5

#include <string>

#include "renzan/plan/cost_model.h"

namespace renzan {

// Missing keys keep the defaults of MachineRates. Throws kNoInput or kConfig.
Topology ReadTopology(const std::string& path);

}  // namespace renzan
