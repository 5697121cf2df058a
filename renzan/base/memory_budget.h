#pragma once

// How much memory this process may use. `root` is prefixed to every path that is read (for tests).
// Thread-safe.

#include <cstdint>
#include <string>

namespace renzan {

struct MemoryBudget {
  int64_t bytes = 0;      // memory of the machine
  int64_t available = 0;  // of the machine, without swapping
  int64_t limit = 0;      // strictest limit of our cgroups; `bytes` if none is lower
  std::string cgroup;     // directory of the cgroup with that limit; empty without one
  // What can still be taken: the least of `available` and of what every cgroup's limit leaves,
  // counting page cache as free. INT64_MAX if nothing could be read.
  int64_t room = 0;
  std::string room_cgroup;  // the cgroup that limits `room`; empty if the machine does
};

// Files that cannot be read impose no limit.
MemoryBudget ReadMemoryBudget(const std::string& root = "");

}  // namespace renzan
