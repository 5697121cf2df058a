#include "renzan/cluster/local/supervisor/attempt_cgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/oom_kills.h"
#include "renzan/base/sha256.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::local {
namespace {

constexpr double kSecondsToEmpty = 5;
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr int64_t kLeastQuotaUs = 1'000;  // the kernel's

Cgroup Inside(const Cgroup& parent, const AttemptPlan& plan) {
  return {parent.directory + "/" + plan.cgroups.name, parent.v2};
}

void Write(const std::vector<CgroupSetting>& settings, const Cgroup& to) {
  const ProcessCgroup group(to);
  for (const CgroupSetting& setting : settings) {
    const int error = group.Write(setting.file, setting.value);
    if (error != 0 && error != setting.ignored_errno)
      Fail(ErrorCode::kOsError, "cannot write {} to {}/{}: {}", setting.value, group.directory(),
           setting.file, std::strerror(error));
  }
}

}  // namespace

std::vector<CgroupSetting> CpuSettings(bool v2, int64_t millis) {
  const int64_t quota = std::max(kLeastQuotaUs, millis * kCpuPeriodUs / 1000);
  if (v2) return {{"cpu.max", fmt::format("{} {}", quota, kCpuPeriodUs)}};
  // EINVAL: more than what a group around this one may use, which limits the job anyway.
  return {{"cpu.cfs_period_us", std::to_string(kCpuPeriodUs)},
          {"cpu.cfs_quota_us", std::to_string(quota), EINVAL}};
}

// Without swap: a job that needs more would slow the machine down instead of ending.
std::vector<CgroupSetting> MemorySettings(bool v2, int64_t mib) {
  const std::string bytes = std::to_string(mib << 20);
  // ENOENT: the kernel does not count swap.
  if (v2) return {{"memory.max", bytes}, {"memory.swap.max", "0", ENOENT}};
  return {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes, ENOENT}};
}

AttemptCgroups::AttemptCgroups(const AttemptPlan& plan) : plan_(plan) {
  for (const Cgroup& parent : {plan.cgroups.hold, plan.cgroups.cpu, plan.cgroups.memory}) {
    if (parent.directory.empty()) continue;
    const Cgroup group = Inside(parent, plan);
    if (!Has(group)) groups_.emplace_back(group);
  }
  if (!HasDevicesToDeny()) return;
  const Cgroup group = Inside(plan.cgroups.devices, plan);
  only_for_devices_ = !Has(group);
  if (only_for_devices_) groups_.emplace_back(group);
}

bool AttemptCgroups::Has(const Cgroup& group) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const ProcessCgroup& other) {
    return other.directory() == group.directory;
  });
}

bool AttemptCgroups::HasDevicesToDeny() const {
  return !plan_.cgroups.devices.directory.empty() && !plan_.denied_devices.empty();
}

int64_t AttemptCgroups::CpuMillis() const {
  if (plan_.cgroups.cpu.directory.empty()) return 0;
  int64_t millis = 0;
  for (const AttemptPlan::Worker& worker : plan_.workers) millis += worker.cpu_millis;
  return millis;
}

int64_t AttemptCgroups::MemoryMib() const {
  if (plan_.cgroups.memory.directory.empty()) return 0;
  int64_t mib = 0;
  for (const AttemptPlan::Worker& worker : plan_.workers) {
    if (worker.memory_mib == 0) return 0;
    mib += worker.memory_mib;
  }
  return mib;
}

void AttemptCgroups::Make() {
  try {
    MakeAll();
  } catch (const Error& error) {
    entrances_.clear();
    if (CpuMillis() > 0 || MemoryMib() > 0)
      throw error.WithContext("a limit of cgroups.cpu or cgroups.memory cannot be set");
    LogWarning("the workers start without a control group: {}", error.what());
  }
  if (HasDevicesToDeny()) DenyDevices();
}

void AttemptCgroups::MakeAll() {
  const std::span<const ProcessCgroup> groups(groups_.begin(),
                                              groups_.end() - (only_for_devices_ ? 1 : 0));
  for (const ProcessCgroup& group : groups) group.Make();
  const Cgroup cpu = Inside(plan_.cgroups.cpu, plan_), memory = Inside(plan_.cgroups.memory, plan_);
  if (CpuMillis() > 0) Write(CpuSettings(cpu.v2, CpuMillis()), cpu);
  if (MemoryMib() > 0) Write(MemorySettings(memory.v2, MemoryMib()), memory);
  for (const ProcessCgroup& group : groups) entrances_.push_back(group.Entrance());
}

void AttemptCgroups::DenyDevices() {
  const ProcessCgroup group(Inside(plan_.cgroups.devices, plan_));
  try {
    if (only_for_devices_) group.Make();
    group.Deny(plan_.denied_devices);
    if (only_for_devices_) entrances_.push_back(group.Entrance());
    denies_devices_ = !entrances_.empty();
  } catch (const Error& error) {
    LogWarning("the workers can open GPUs that they were not given: {}", error.what());
  }
}

std::vector<int> AttemptCgroups::entrances() const {
  std::vector<int> descriptors;
  for (const Descriptor& entrance : entrances_) descriptors.push_back(entrance.get());
  return descriptors;
}

int AttemptCgroups::Kill() const {
  int killed = 0;
  for (const ProcessCgroup& group : groups_) {
    killed += static_cast<int>(group.Processes().size());
    if (!group.Kill(kSecondsToEmpty))
      LogWarning("processes in {} do not end after SIGKILL: they wait for a disk or device",
                 group.directory());
  }
  return killed;
}

void AttemptCgroups::Remove() const {
  for (const ProcessCgroup& group : groups_)
    if (!group.Remove())
      LogWarning(
          "cannot remove the control group {0}: run `rmdir {0}` once its processes have ended",
          group.directory());
}

std::string AttemptCgroups::OutOfMemory() const {
  if (MemoryMib() == 0) return "";
  const OomKillsOf oom = OomKillsIn(Inside(plan_.cgroups.memory, plan_));
  if (oom.kills == 0) return "";
  const std::string killed =
      fmt::format("the kernel killed {} of the job", Counted(oom.kills, "process", "processes"));
  if (!oom.reached_limit)
    return killed + ", because the machine or a group around the daemon ran out of memory";
  return fmt::format(
      "{}, which needed more than the {} of memory that {} (resources.memory): request more",
      killed, spec::MebibytesText(MemoryMib()),
      plan_.workers.size() > 1 ? "its workers request together" : "it requests");
}

// Never the name of another attempt's, also where daemons in containers share the groups' parent
// and have the same paths.
void NameCgroups(AttemptPlan& plan, const std::string& directory) {
  AttemptPlan::Cgroups& cgroups = plan.cgroups;
  if (!cgroups.name.empty()) return;
  constexpr size_t kDigits = 12;
  const std::string unique =
      fmt::format("{} {} {}", directory, SystemClock().UnixMs(), SystemClock().MonotonicSeconds());
  cgroups.name = fmt::format("renzan-job-{}-attempt-{}-{}", plan.job, plan.attempt,
                             Sha256Hex(unique).substr(0, kDigits));
}

}  // namespace renzan::cluster::local
