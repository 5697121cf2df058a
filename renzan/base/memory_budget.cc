#include "renzan/base/memory_budget.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "renzan/base/cgroup.h"

namespace renzan {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// "max" (v2) and a number near 2^63 (v1) mean no limit.
int64_t NumberIn(const std::string& path, int64_t otherwise) {
  std::string text;
  std::ifstream(path) >> text;
  int64_t number = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number
                                                                                : otherwise;
}

// The page cache charged to a cgroup, which the kernel drops when memory runs short.
int64_t FileBytes(const std::string& directory, bool v2) {
  std::ifstream stat(directory + "/memory.stat");
  std::string key;
  int64_t sum = 0;
  for (int64_t value; stat >> key >> value;)
    for (const char* kind : {"inactive_file", "active_file"})
      if (key == (v2 ? std::string(kind) : std::string("total_") + kind)) sum += value;
  return sum;
}

}  // namespace

MemoryBudget ReadMemoryBudget(const std::string& root) {
  MemoryBudget budget{.room = kUnknown};
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string key, unit;
  for (int64_t kibibytes; meminfo >> key >> kibibytes; std::getline(meminfo, unit)) {
    if (key == "MemTotal:") budget.bytes = kibibytes << 10;
    if (key == "MemAvailable:") budget.room = budget.available = kibibytes << 10;
  }
  budget.limit = budget.bytes;
  for (const Cgroup& group : CgroupsOfThisProcess("memory", root)) {
    const std::string directory = root + group.directory;
    const int64_t limit =
        NumberIn(directory + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"), kUnknown);
    if (limit < budget.limit) {
      budget.limit = limit;
      budget.cgroup = group.directory;
    }
    if (limit == kUnknown) continue;
    const int64_t used =
        NumberIn(directory + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"), 0);
    const int64_t room =
        std::max<int64_t>(0, limit - std::max<int64_t>(0, used - FileBytes(directory, group.v2)));
    if (room >= budget.room) continue;
    budget.room = room;
    budget.room_cgroup = group.directory;
  }
  return budget;
}

}  // namespace renzan
