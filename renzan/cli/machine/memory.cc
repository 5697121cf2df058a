#include "renzan/cli/machine/memory.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "renzan/base/cgroup.h"
#include "renzan/cli/text/amounts_text.h"

namespace renzan {
namespace {

// "max" (v2) and a number near 2^63 (v1) mean no limit.
int64_t LimitIn(const std::string& path, int64_t none) {
  std::string text;
  std::ifstream(path) >> text;
  int64_t limit = none;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return error == std::errc() && end == text.data() + text.size() && limit > 0 ? limit : none;
}

}  // namespace

MemoryBudget ReadMemoryBudget(const std::string& root) {
  MemoryBudget budget;
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string key, unit;
  for (int64_t kibibytes; meminfo >> key >> kibibytes; std::getline(meminfo, unit)) {
    if (key == "MemTotal:") budget.bytes = kibibytes << 10;
    if (key == "MemAvailable:") budget.available = kibibytes << 10;
  }
  budget.limit = budget.bytes;
  for (const Cgroup& group : CgroupsOfThisProcess("memory", root)) {
    const std::string file =
        group.directory + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes");
    const int64_t limit = LimitIn(root + file, budget.limit);
    if (limit >= budget.limit) continue;
    budget.limit = limit;
    budget.cgroup = group.directory;
  }
  return budget;
}

Finding FindMemory(const std::string& root) {
  const MemoryBudget budget = ReadMemoryBudget(root);
  Finding finding{.name = "memory",
                  .here = fmt::format("{}, {} of it available", MebibytesText(budget.bytes >> 20),
                                      MebibytesText(budget.available >> 20))};
  if (!budget.cgroup.empty()) {
    finding.state = Finding::State::kLimited;
    finding.here +=
        fmt::format(", but a limit of {} ({})", MebibytesText(budget.limit >> 20), budget.cgroup);
    finding.advice = "raise the container's memory limit if a model does not fit";
  }
  return finding;
}

}  // namespace renzan
