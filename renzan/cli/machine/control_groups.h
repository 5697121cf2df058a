#pragma once

#include "renzan/base/process/process_cgroup_support.h"
#include "renzan/cli/machine/finding.h"

namespace renzan {

// Control groups for the jobs of a daemon of this user, started in this shell, on a machine with or
// without GPUs.
Finding FindControlGroups(const CgroupSupport& support, bool has_gpus);

}  // namespace renzan
