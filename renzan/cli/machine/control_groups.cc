#include "renzan/cli/machine/control_groups.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace renzan {

Finding FindControlGroups(const CgroupSupport& support, bool has_gpus) {
  Finding finding{.name = "control groups"};
  if (support.hold.group.directory.empty()) {
    finding.state = Finding::State::kMissing;
    finding.here = support.hold.why_not;
    finding.advice =
        "start the daemon as root or in a service with Delegate=yes: its jobs' processes cannot "
        "hide from it then";
    return finding;
  }
  finding.here = "hold jobs' processes in " + support.hold.group.directory;
  std::string limits;
  for (const auto& [key, parent] :
       {std::pair{"cpu", &support.cpu}, std::pair{"memory", &support.memory}}) {
    if (!parent->group.directory.empty()) {
      limits += fmt::format("{}cgroups.{}", limits.empty() ? "" : ", ", key);
    } else {
      finding.state = Finding::State::kLimited;
      finding.here += "; " + parent->why_not;
      finding.advice = "to limit jobs, name a group with these controllers in cgroups.parent";
    }
  }
  if (!limits.empty()) finding.here += "; limits: " + limits;
  if (!has_gpus) return finding;
  if (!support.devices.group.directory.empty()) {
    finding.here += "; keep jobs from GPUs that they are not given";
  } else {
    finding.state = Finding::State::kLimited;
    finding.here += "; do not keep jobs from others' GPUs: " + support.devices.why_not;
    if (finding.advice.empty())
      finding.advice = "start the daemon as root: its jobs can open no GPU but theirs then";
  }
  return finding;
}

}  // namespace renzan
