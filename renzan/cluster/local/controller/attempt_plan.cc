#include "renzan/cluster/local/controller/attempt_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "renzan/base/error.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {
namespace {

std::vector<dev_t> OthersThan(const std::vector<AttemptPlan::Worker>& workers,
                              const std::vector<dev_t>& gpus) {
  std::set<int> own;
  for (const AttemptPlan::Worker& worker : workers)
    own.insert(worker.devices.begin(), worker.devices.end());
  std::vector<dev_t> others;
  for (int number = 0; number < static_cast<int>(gpus.size()); ++number)
    if (!own.contains(number)) others.push_back(gpus[number]);
  return others;
}

}  // namespace

NamedPlacement WithDevices(const ClusterState& state, const Placement& placement,
                           int64_t gpus_per_worker) {
  NamedPlacement named = WithNames(state.snapshot, placement);
  const bool of_machine = state.machine_gpus.has_value();
  // By node; under "" if they are the machine's.
  std::map<std::string, std::set<int>> taken;
  const auto taken_on = [&](const std::string& node) -> std::set<int>& {
    return taken[of_machine ? "" : node];
  };
  for (const auto& [id, live] : state.live) {
    if (!live.record.attempt) continue;
    for (const NodeShare& share : live.record.attempt->placement)
      for (const auto& devices : share.devices)
        taken_on(share.node).insert(devices.begin(), devices.end());
  }
  for (size_t i = 0; i < named.size(); ++i) {
    const int64_t number =
        state.machine_gpus.value_or(state.snapshot.nodes[placement[i].node].capacity.gpu());
    std::set<int>& unavailable = taken_on(named[i].node);
    named[i].devices.resize(named[i].workers);
    int next = 0;
    for (auto& devices : named[i].devices)
      for (; static_cast<int64_t>(devices.size()) < gpus_per_worker; ++next) {
        CHECK_MSG(next < number, "more devices than {} has",
                  of_machine ? "the machine" : named[i].node);
        if (unavailable.insert(next).second) devices.push_back(next);
      }
  }
  return named;
}

TimeMs TimeLimitOf(const LiveRecord& live) {
  const TimeMs timeout = live.policy.timeout_ms;
  return timeout > 0 ? std::max<TimeMs>(1, timeout - live.record.run_ms) : 0;
}

AttemptPlan MakeAttemptPlan(const LiveRecord& live, const Resources& per_worker,
                            const JobDirectories& directories, const std::string& inherited_file,
                            const Enforced& enforced) {
  const JobRecord& record = live.record;
  const std::string directory = directories.Of(record.id);
  AttemptPlan plan{.job = record.id,
                   .attempt = live.record.attempt->number,
                   .command = live.spec.command,
                   .environment = live.spec.environment,
                   .inherited_file = inherited_file,
                   .working_directory = live.spec.working_directory,
                   .run_dir = directory + "/run",
                   .checkpoint_dir = CheckpointDirectoryOf(live.spec, directory),
                   .uid = record.uid,
                   .gid = record.gid,
                   .grace_seconds = static_cast<double>(live.spec.grace_ms()) / 1000,
                   .saves_on_stop = live.policy.saves_on_stop,
                   .enforce_memory = enforced.memory,
                   .max_disk_mib = enforced.max_disk_mib,
                   .cgroups = enforced.cgroups};
  plan.timeout_ms = TimeLimitOf(live);
  for (const NodeShare& share : live.record.attempt->placement)
    for (int worker = 0; worker < share.workers; ++worker)
      plan.workers.push_back({.node = share.node,
                              .local_rank = worker,
                              .devices = share.devices[worker],
                              .cpu_millis = per_worker[kCpu],
                              .memory_mib = per_worker[kMemory]});
  plan.denied_devices = OthersThan(plan.workers, enforced.gpus);
  return plan;
}

}  // namespace renzan::cluster::local
