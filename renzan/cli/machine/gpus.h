#pragma once

// NVIDIA GPUs, by what the driver shows in /dev and /proc. `root` is prefixed to every path that is
// read, for tests.

#include <cstdint>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

int64_t CountGpus(const std::string& root = "");

Finding FindGpus(const std::string& root = "");

}  // namespace renzan
