#include "renzan/cluster/local/supervisor/launch_environment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "renzan/base/error.h"

namespace renzan::cluster::local {
namespace {

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

using Variables = std::map<std::string, std::string>;

void AddRendezvous(const AttemptPlan& plan, int rank, int master_port, Variables& variables) {
  const AttemptPlan::Worker& worker = plan.workers.at(static_cast<size_t>(rank));
  const auto on_this_node =
      std::count_if(plan.workers.begin(), plan.workers.end(),
                    [&](const AttemptPlan::Worker& other) { return other.node == worker.node; });
  variables["RANK"] = std::to_string(rank);
  variables["WORLD_SIZE"] = std::to_string(plan.workers.size());
  variables["LOCAL_RANK"] = std::to_string(worker.local_rank);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(on_this_node);
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(master_port);
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const AttemptPlan& plan, int rank,
                                           const std::string& attempt_directory, int master_port,
                                           const JobUser& user,
                                           const std::map<std::string, std::string>& exported) {
  const AttemptPlan::Worker& worker = plan.workers.at(static_cast<size_t>(rank));
  Variables variables = {{"PATH", kDefaultPath}, {"LANG", "C.UTF-8"},    {"HOME", user.home},
                         {"USER", user.name},    {"LOGNAME", user.name}, {"SHELL", user.shell}};
  for (const Variables* each : {&exported, &plan.environment})
    for (const auto& [name, value] : *each) variables[name] = value;
  if (plan.workers.size() > 1) AddRendezvous(plan, rank, master_port, variables);
  variables["RENZAN_RUN_DIR"] = plan.run_dir;
  variables["RENZAN_CHECKPOINT_DIR"] = plan.checkpoint_dir;
  variables["RENZAN_GRACE_SECONDS"] = fmt::format("{}", plan.grace_seconds);
  variables["RENZAN_JOB_ID"] = std::to_string(plan.job);
  variables["RENZAN_ATTEMPT"] = std::to_string(plan.attempt);
  variables["RENZAN_NODE"] = worker.node;
  variables["RENZAN_WORKER"] = std::to_string(rank);
  if (worker.cpu_millis > 0)
    variables["RENZAN_CPUS"] = fmt::format("{}", static_cast<double>(worker.cpu_millis) / 1000);
  variables["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(worker.devices, ","));
  variables[kAttemptMark] = attempt_directory;
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

AttemptPlan WithOwnDevicesOnly(AttemptPlan plan) {
  std::set<int> own;
  for (const AttemptPlan::Worker& worker : plan.workers)
    own.insert(worker.devices.begin(), worker.devices.end());
  for (AttemptPlan::Worker& worker : plan.workers)
    for (int& device : worker.devices)
      device = static_cast<int>(std::distance(own.begin(), own.find(device)));
  return plan;
}

}  // namespace renzan::cluster::local
