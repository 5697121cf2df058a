#include "renzan/cluster/local/controller/attempt_plan.h"

#include <algorithm>
#include <set>

#include "renzan/base/error.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

NamedPlacement WithNames(const Snapshot& snapshot, const Placement& placement) {
  NamedPlacement named;
  for (const Placed& placed : placement)
    named.push_back({.node = snapshot.nodes[placed.node].name, .workers = placed.workers});
  return named;
}

NamedPlacement WithDevices(const ClusterState& state, const Placement& placement,
                           int64_t gpus_per_worker) {
  NamedPlacement named = WithNames(state.snapshot, placement);
  for (size_t i = 0; i < named.size(); ++i) {
    std::set<int> taken;
    for (const auto& [id, live] : state.live) {
      if (!live.attempt) continue;
      for (const NodeShare& share : live.attempt->placement)
        if (share.node == named[i].node)
          for (const auto& devices : share.devices) taken.insert(devices.begin(), devices.end());
    }
    int next = 0;
    named[i].devices.resize(named[i].workers);
    for (auto& devices : named[i].devices)
      while (static_cast<int64_t>(devices.size()) < gpus_per_worker) {
        if (!taken.count(next)) devices.push_back(next);
        ++next;
      }
    CHECK_MSG(
        next <= state.snapshot.nodes[placement[i].node].capacity.gpu() || gpus_per_worker == 0,
        "more devices than {} has", named[i].node);
  }
  return named;
}

AttemptPlan MakeAttemptPlan(const LiveJob& live, const Resources& per_worker,
                            const JobDirectories& directories, bool enforce_memory) {
  const JobRecord& record = live.record;
  const std::string directory = directories.Of(record.id);
  AttemptPlan plan{.job = record.id,
                   .attempt = live.attempt->number,
                   .command = live.spec.command,
                   .environment = live.spec.environment,
                   .working_directory = live.spec.working_directory,
                   .run_dir = directory + "/run",
                   .checkpoint_dir = CheckpointDirectoryOf(live.spec, directory),
                   .uid = record.uid,
                   .gid = record.gid,
                   .grace_seconds = static_cast<double>(live.spec.grace_ms()) / 1000,
                   .saves_on_stop = live.policy.saves_on_stop,
                   .enforce_memory = enforce_memory};
  if (live.policy.timeout_ms > 0)
    plan.timeout_ms = std::max<TimeMs>(1, live.policy.timeout_ms - record.run_ms);
  for (const NodeShare& share : live.attempt->placement)
    for (int worker = 0; worker < share.workers; ++worker)
      plan.workers.push_back({.node = share.node,
                              .local_rank = worker,
                              .devices = share.devices[worker],
                              .cpu_millis = per_worker[kCpu],
                              .memory_mib = per_worker[kMemory]});
  return plan;
}

}  // namespace renzan::cluster::local
