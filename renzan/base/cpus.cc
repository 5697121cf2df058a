#include "renzan/base/cpus.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

namespace renzan {
namespace {

// Where a hierarchy of cgroups is mounted, and which of its groups is seen at that place.
struct Mount {
  std::string point, root;
};

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool HasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');)
    if (each == word) return true;
  return false;
}

// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS
std::optional<Mount> FindMount(const std::vector<std::string>& mounts, bool v2) {
  for (const std::string& line : mounts) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, type, source, options;
    Mount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && HasWord(options, "cpu")) return mount;
  }
  return std::nullopt;
}

// HIERARCHY:CONTROLLERS:PATH; version 2 is hierarchy 0 without controllers.
std::optional<std::string> FindGroup(const std::vector<std::string>& groups, bool v2) {
  for (const std::string& line : groups) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? line.starts_with("0::") : HasWord(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<int64_t> Integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The CPUs that a group's files grant it. Version 2: "max 100000" or "150000 100000" in one file;
// version 1: two files, and a quota of -1 for none.
std::optional<double> QuotaIn(const std::string& directory, bool v2) {
  std::string quota, period;
  if (v2) {
    std::ifstream(directory + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  }
  const std::optional<int64_t> q = Integer(quota), p = Integer(period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return static_cast<double>(*q) / static_cast<double>(*p);
}

// A limit of any ancestor holds too.
void TakeQuotas(const std::string& root, bool v2, CpuBudget* budget) {
  const std::optional<Mount> mount = FindMount(Lines(root + "/proc/self/mountinfo"), v2);
  const std::optional<std::string> group = FindGroup(Lines(root + "/proc/self/cgroup"), v2);
  if (!mount || !group) return;
  // In a container the mount shows the container's own group, whose path is the host's.
  std::string below = *group;
  if (mount->root != "/") {
    below = below == mount->root || below.starts_with(mount->root + "/")
                ? below.substr(mount->root.size())
                : "";
  }
  for (;;) {
    while (below.ends_with('/')) below.pop_back();
    const std::string directory = mount->point + below;
    const std::optional<double> quota = QuotaIn(root + directory, v2);
    if (quota && *quota < budget->quota) {
      budget->quota = *quota;
      budget->cgroup = directory;
    }
    if (below.empty()) return;
    const size_t slash = below.rfind('/');
    below.resize(slash == std::string::npos ? 0 : slash);
  }
}

// "0-3,8"
std::string ListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t first = 0, last; first < cpus.size(); first = last + 1) {
    for (last = first; last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    if (last > first) text += fmt::format("-{}", cpus[last]);
  }
  return text;
}

std::vector<int> AffinityMask() {
  // The kernel refuses a set smaller than its own, which may be larger than glibc's 1024.
  for (size_t count = 1024; count <= size_t{1} << 18; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(count), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    const size_t bytes = CPU_ALLOC_SIZE(count);
    if (!set || sched_getaffinity(0, bytes, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (size_t cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(static_cast<int>(cpu));
    return cpus;
  }
  return {};
}

}  // namespace

CpuBudget ReadCpuBudget(const std::string& root) {
  CpuBudget budget;
  const std::vector<int> cpus = AffinityMask();
  budget.allowed = cpus.empty() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency()))
                                : static_cast<int>(cpus.size());
  budget.allowed_list = ListText(cpus);
  for (const bool v2 : {true, false}) TakeQuotas(root, v2, &budget);
  return budget;
}

int UsableCpus(const CpuBudget& budget) { return UsableCpus(budget, 1, 1); }

int UsableCpus(const CpuBudget& budget, int sharing_allowed, int sharing_quota) {
  const double allowed = std::floor(static_cast<double>(budget.allowed) / sharing_allowed);
  const double quota = std::floor(budget.quota / sharing_quota);
  return static_cast<int>(std::max(1.0, std::min(allowed, quota)));
}

}  // namespace renzan
