#include "renzan/base/oom_kills.h"

#include <fstream>
#include <optional>

#include "renzan/base/cgroup.h"

namespace renzan {
namespace {

// The number after "oom_kill" in a file of such pairs.
std::optional<int64_t> CountIn(const std::string& path) {
  std::ifstream file(path);
  std::string key;
  for (int64_t value; file >> key >> value;)
    if (key == "oom_kill") return value;
  return std::nullopt;
}

}  // namespace

int64_t OomKills(const std::string& root) {
  for (const Cgroup& group : CgroupsOfThisProcess("memory", root)) {
    const char* file = group.v2 ? "/memory.events.local" : "/memory.oom_control";
    if (const auto count = CountIn(root + group.directory + file)) return *count;
  }
  return CountIn(root + "/proc/vmstat").value_or(0);
}

int64_t OomKillsIn(const Cgroup& group) {
  const char* file = group.v2 ? "/memory.events" : "/memory.oom_control";
  return CountIn(group.directory + file).value_or(0);
}

}  // namespace renzan
