#pragma once

// The control groups whose limits apply to this process: its own and all ancestors, cgroup v1 or
// v2. Thread-safe.

#include <string>
#include <string_view>
#include <vector>

namespace renzan {

struct Cgroup {
  std::string directory;
  bool v2 = true;  // decides the names of its files
};

// The groups in which `controller` ("cpu", "memory") is active, innermost first. `root` is prefixed
// to every path that is read (for tests) and is not part of the result. In a container the list
// ends with the container's group; its ancestors are not visible.
std::vector<Cgroup> CgroupsOfThisProcess(std::string_view controller, const std::string& root = "");

}  // namespace renzan
