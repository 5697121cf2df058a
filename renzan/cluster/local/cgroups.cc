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

}  // namespace

AttemptPlan::Cgroups FindCgroups(const spec::ClusterConfig::CgroupsConfig& config) {
  AttemptPlan::Cgroups cgroups;
  if (!config.hold && !config.cpu && !config.memory) return cgroups;
  const CgroupSupport support =
      FindCgroupSupport({.parent = config.parent, .enable = config.cpu || config.memory});
  if (config.cpu) cgroups.cpu = Required("cpu", support.cpu);
  if (config.memory) cgroups.memory = Required("memory", support.memory);
  if (config.hold) cgroups.hold = support.hold.group;
  if (!cgroups.hold.directory.empty()) {
    LogInfo("control groups in {} hold the processes of jobs", cgroups.hold.directory);
  } else if (config.hold) {
    LogInfo("no control groups hold the processes of jobs: {}", support.hold.why_not);
  }
  return cgroups;
}

}  // namespace renzan::cluster::local
