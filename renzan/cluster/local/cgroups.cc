#include "renzan/cluster/local/cgroups.h"

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/process/process_cgroup_support.h"

namespace renzan::cluster::local {
namespace {

Cgroup Required(const char* key, const CgroupSupport::Parent& parent) {
  if (parent.group.directory.empty())
    Fail(ErrorCode::kConfig,
         "cgroups.{} is true, but the daemon cannot limit jobs: {}: start it as root or in a group "
         "that is delegated to it, name another with cgroups.parent, or set cgroups.{} to false",
         key, parent.why_not, key);
  return parent.group;
}

void Use(const char* what_for, const CgroupSupport::Parent& parent, Cgroup& group) {
  group = parent.group;
  if (!group.directory.empty()) {
    LogInfo("control groups in {} {}", group.directory, what_for);
  } else {
    LogInfo("no control groups {}: {}", what_for, parent.why_not);
  }
}

}  // namespace

AttemptPlan::Cgroups FindCgroups(const spec::ClusterConfig::CgroupsConfig& config,
                                 const std::vector<dev_t>& gpus) {
  AttemptPlan::Cgroups cgroups;
  if (!config.hold && !config.cpu && !config.memory) return cgroups;
  const CgroupSupport support = FindCgroupSupport(
      {.parent = config.parent, .enable = config.cpu || config.memory, .devices = gpus});
  if (config.cpu) cgroups.cpu = Required("cpu", support.cpu);
  if (config.memory) cgroups.memory = Required("memory", support.memory);
  if (config.hold) Use("hold the processes of jobs", support.hold, cgroups.hold);
  if (config.hold && !gpus.empty())
    Use("keep jobs from GPUs that they are not given", support.devices, cgroups.devices);
  return cgroups;
}

}  // namespace renzan::cluster::local
