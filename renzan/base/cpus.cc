#include "renzan/base/cpus.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "renzan/base/cgroup.h"

namespace renzan {
namespace {

std::optional<int64_t> Integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The CPU quota in a cgroup's files, in CPUs. Version 2: "max 100000" or "150000 100000" in one
// file; version 1: two files, where a quota of -1 means no limit.
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

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<int> AffinityMask() {
  // The kernel rejects a set smaller than its own, which may be larger than glibc's 1024.
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
  for (const Cgroup& group : CgroupsOfThisProcess("cpu", root)) {
    const std::optional<double> quota = QuotaIn(root + group.directory, group.v2);
    if (!quota || *quota >= budget.quota) continue;
    budget.quota = *quota;
    budget.cgroup = group.directory;
  }
  if (const double requested = std::strtod(Variable("RENZAN_CPUS").c_str(), nullptr);
      requested > 0) {
    budget.requested = requested;
    if (const std::string worker = Variable("RENZAN_WORKER"); !worker.empty())
      budget.worker = Variable("RENZAN_ATTEMPT_DIR") + " " + worker;
  }
  return budget;
}

int UsableCpus(const CpuBudget& budget) { return UsableCpus(budget, 1, 1, 1); }

int UsableCpus(const CpuBudget& budget, int sharing_allowed, int sharing_quota,
               int sharing_requested) {
  const double allowed = std::floor(static_cast<double>(budget.allowed) / sharing_allowed);
  const double quota = std::floor(budget.quota / sharing_quota);
  const double requested = std::floor(budget.requested / sharing_requested);
  return static_cast<int>(std::max(1.0, std::min({allowed, quota, requested})));
}

}  // namespace renzan
