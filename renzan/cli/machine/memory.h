#pragma once

// How much memory this process may use. `root` is prefixed to every path that is read (for tests).

#include <cstdint>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

struct MemoryBudget {
  int64_t bytes = 0;      // memory of the machine
  int64_t available = 0;  // available without swapping
  int64_t limit = 0;      // strictest limit of our cgroups; `bytes` if none is lower
  std::string cgroup;     // directory of the cgroup with that limit; empty without one
};

// Files that cannot be read impose no limit.
MemoryBudget ReadMemoryBudget(const std::string& root = "");

Finding FindMemory(const std::string& root = "");

}  // namespace renzan
