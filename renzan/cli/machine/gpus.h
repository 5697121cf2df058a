#pragma once

// NVIDIA GPUs, as the driver shows them in /dev and /proc. `root` is prefixed to every path that is
// read (for tests).

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

Finding FindGpus(const std::string& root = "");

// Whether device: cuda would work.
Finding FindGpuTraining();

}  // namespace renzan
