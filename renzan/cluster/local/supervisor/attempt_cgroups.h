#pragma once

// The control groups of one attempt (AttemptPlan::Cgroups): one that holds its processes, one that
// limits each resource, and one that keeps them from devices; these may be the same. The limits are
// those of all workers together. Without groups in the plan, every function does nothing. Not
// thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/process_cgroup.h"
#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

class AttemptCgroups {
 public:
  // Those that the plan names, whether they exist or not.
  explicit AttemptCgroups(const AttemptPlan& plan);

  // Makes them and sets the limits. Throws Error kOsError, kCantCreate or kIo if a limit cannot be
  // set; if only processes cannot be held or kept from devices, that is a warning.
  void Make();
  // After Make(): whether it keeps processes from plan.denied_devices.
  bool denies_devices() const { return denies_devices_; }
  // For ChildOptions::cgroups; after Make().
  std::vector<int> entrances() const;

  // Kills all processes in them. Returns how many there were.
  int Kill() const;
  // Once they are empty.
  void Remove() const;

  // That the kernel has killed processes because memory ran out, and what to do; "" if it has
  // killed none, or the plan has no limit.
  std::string OutOfMemory() const;

 private:
  bool Has(const Cgroup& group) const;
  bool HasDevicesToDeny() const;
  void MakeAll();
  void DenyDevices();
  // All workers'; 0: no limit.
  int64_t CpuMillis() const;
  int64_t MemoryMib() const;

  const AttemptPlan& plan_;
  std::vector<ProcessCgroup> groups_;  // the one that holds first
  bool only_for_devices_ = false;      // the last one
  std::vector<Descriptor> entrances_;
  bool denies_devices_ = false;
};

// What is written to a group's files, in this order, to limit CPU time and memory.
struct CgroupSetting {
  std::string file, value;
  int ignored_errno = 0;  // the limit holds even so
};
std::vector<CgroupSetting> CpuSettings(bool v2, int64_t millis);
std::vector<CgroupSetting> MemorySettings(bool v2, int64_t mib);

// Names groups that have none, for an attempt in this directory.
void NameCgroups(AttemptPlan& plan, const std::string& directory);

}  // namespace renzan::cluster::local
