#pragma once

// NVIDIA GPUs, as the driver shows them in /dev and /proc. `root` is prefixed to every path that is
// read (for tests).

#include <cstdint>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

int64_t CountGpus(const std::string& root = "");

Finding FindGpus(const std::string& root = "");

// Whether device: cuda would work.
Finding FindGpuTraining();

}  // namespace renzan
