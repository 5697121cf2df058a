#include "renzan/base/oom_kills.h"

#include <fstream>
#include <optional>
#include <string_view>

#include "renzan/base/cgroup.h"

namespace renzan {
namespace {

// The number after a word in a file of such pairs.
std::optional<int64_t> CountIn(const std::string& path, std::string_view word = "oom_kill") {
  std::ifstream file(path);
  std::string key;
  for (int64_t value; file >> key >> value;)
    if (key == word) return value;
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

OomKillsOf OomKillsIn(const Cgroup& group) {
  if (group.v2) {
    const std::string events = group.directory + "/memory.events";
    return {CountIn(events).value_or(0), CountIn(events, "oom").value_or(0) > 0};
  }
  // memory.failcnt does not count if memory and swap together have the same limit.
  int64_t most = 0, limit = 0;
  std::ifstream(group.directory + "/memory.max_usage_in_bytes") >> most;
  std::ifstream(group.directory + "/memory.limit_in_bytes") >> limit;
  // Several pages may be needed at once.
  constexpr int64_t kAtOnce = 2 << 20;
  return {CountIn(group.directory + "/memory.oom_control").value_or(0), most + kAtOnce >= limit};
}

}  // namespace renzan
