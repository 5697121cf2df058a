#pragma once

#include <cstdint>
#include <string>

namespace renzan {

// The NVIDIA GPUs in /dev. `root` is prefixed to the path (for tests).
int64_t CountGpus(const std::string& root = "");

}  // namespace renzan
