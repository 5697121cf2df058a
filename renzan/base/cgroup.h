#pragma once

// The control groups that this process is in, and whose limits therefore hold: its own and all
// above, of version 1 or 2. Thread-safe.

#include <string>
#include <string_view>
#include <vector>

namespace renzan {

struct Cgroup {
  std::string directory;
  bool v2 = true;  // which says how its files are called
};

// Those in which `controller` ("cpu", "memory") is in force, the innermost first. `root` is
// prefixed to every path that is read, for tests, and is not part of the result. In a container the
// list ends with the container's group: what is above cannot be seen.
std::vector<Cgroup> CgroupsOfThisProcess(std::string_view controller, const std::string& root = "");

}  // namespace renzan
