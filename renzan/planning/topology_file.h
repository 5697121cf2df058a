#pragma once

// A description of machines for plans: hosts, workers, memory and rates.
//
//   hosts: 16
//   workers_per_host: 8
//   memory_gib: 40          # of a worker
//   matrix_gflops: 10000    # of a worker, and so on
//   inter_host_gbs: 12.5

#include <string>

#include "renzan/plan/cost_model.h"

namespace renzan {

// Keys that are missing keep the defaults of MachineRates. Throws kNoInput or kConfig.
Topology ReadTopology(const std::string& path);

}  // namespace renzan
