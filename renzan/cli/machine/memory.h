#pragma once

// How much memory this process may use. `root` is prefixed to every path that is read, for tests.

#include <cstdint>
#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

struct MemoryBudget {
  int64_t bytes = 0;      // of the machine
  int64_t available = 0;  // of those, without swapping
  int64_t limit = 0;      // of the strictest of our cgroups; `bytes` where none is stricter
  std::string cgroup;     // whose limit that is, a directory; empty without one
};

// What cannot be read limits nothing.
MemoryBudget ReadMemoryBudget(const std::string& root = "");

Finding FindMemory(const std::string& root = "");

}  // namespace renzan
