#include "renzan/cluster/simulate/what_if.h"

#include <algorithm>
#include <map>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/order/queue_tree.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

// As long as half of the jobs like it; if nothing is known, `assumed_run_ms` in all, or as long
// again as so far: what explain assumes, too (core/explain/forecast.h).
int64_t AssumeWorkLeft(const Snapshot& snapshot, const Job& job, TimeMs assumed_run_ms) {
  const TimeMs progress = ProgressOf(job, snapshot.now);
  const RunTimeQuantiles& learned = LatestRunTime(job);
  const TimeMs left = learned.back() > 0 ? LikelyRemaining(learned, progress)
                                         : std::max(assumed_run_ms - progress, progress);
  if (job.state == JobState::kPending) return std::max<TimeMs>(1, left) * job.max_workers;
  const TimeMs end = job.expected_end.value_or(snapshot.now + left);
  return std::max<TimeMs>(1, end - snapshot.now) * NumWorkers(job.placement);
}

std::map<JobId, TimeMs> Starts(Snapshot snapshot, const Policy& policy, TimeMs assumed_run_ms) {
  // Interruptions are random and not part of the question.
  for (Pool& pool : snapshot.pools) pool.interruptions_per_hour = 0;
  std::vector<int64_t> work_left;
  for (const Job& job : snapshot.jobs)
    work_left.push_back(AssumeWorkLeft(snapshot, job, assumed_run_ms));
  const auto scheduler = MakeScheduler(policy);
  std::map<JobId, TimeMs> starts;
  for (const JobRecord& job : SimulateFrom(std::move(snapshot), work_left, *scheduler).jobs)
    if (job.first_start) starts[job.id] = *job.first_start;
  return starts;
}

template <typename T>
T& FindNamed(std::vector<T>& all, const char* what, const std::string& name) {
  std::vector<std::string> names;
  for (T& one : all) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kNoInput, "there is no {} '{}'{}", what, name,
       nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest));
}

}  // namespace

std::vector<WhatIfRow> WhatIf(const Snapshot& snapshot,
                              const std::function<void(Snapshot&)>& change, const Policy& policy,
                              TimeMs assumed_run_ms) {
  Snapshot changed = snapshot;
  change(changed);
  const auto before = Starts(snapshot, policy, assumed_run_ms);
  const auto after = Starts(changed, policy, assumed_run_ms);
  const auto find = [](const std::map<JobId, TimeMs>& starts, JobId job) {
    const auto at = starts.find(job);
    return at == starts.end() ? std::nullopt : std::optional(at->second);
  };
  std::vector<WhatIfRow> rows;
  for (const Job& job : changed.jobs)
    if (job.state == JobState::kPending)
      rows.push_back(
          {job.id, snapshot.Find(job.id) == nullptr, find(before, job.id), find(after, job.id)});
  return rows;
}

void AddNodes(Snapshot& snapshot, const std::string& pool, int nodes) {
  Pool& grown = FindNamed(snapshot.pools, "pool", pool);
  const int index = static_cast<int>(&grown - snapshot.pools.data());
  auto number =
      static_cast<int>(std::count_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                     [&](const Node& node) { return node.pool == index; }));
  grown.min_nodes += nodes;
  grown.max_nodes += nodes;
  for (const int end = number + nodes; number < end; ++number) {
    snapshot.nodes.push_back(MakeNode(snapshot, index, number));
    snapshot.nodes.back().state = NodeState::kReady;
    snapshot.nodes.back().until = kNever;
  }
}

void RemoveNode(Snapshot& snapshot, const std::string& node) {
  Node& leaving = FindNamed(snapshot.nodes, "node", node);
  leaving.state = NodeState::kDraining;
  leaving.until = kNever;
}

void SetGuarantee(Snapshot& snapshot, const std::string& queue, int kind, int64_t amount) {
  Queue& changed = FindNamed(snapshot.queues, "queue", queue);
  const auto sum_of_queues = [&](int parent) {
    int64_t sum = 0;
    for (const Queue& other : snapshot.queues)
      if (other.parent == parent) sum += other.guaranteed[kind];
    return sum;
  };
  const auto index = static_cast<int>(&changed - snapshot.queues.data());
  if (const int64_t least = sum_of_queues(index); amount < least)
    Fail(ErrorCode::kConfig,
         "queue {} is the parent of queues that are guaranteed {} of {} together: guarantee it as "
         "much, or less to them",
         queue, least, snapshot.resource_names[kind]);
  const std::vector<int> lineage = LineageOf(snapshot, index);
  std::vector<int64_t> before;
  for (const int side : lineage) before.push_back(sum_of_queues(side));
  changed.guaranteed[kind] = amount;
  changed.limit[kind] = std::max(changed.limit[kind], amount);
  // As in cluster.yaml, where a parent has the sum unless it is given more.
  for (size_t level = 1; level < lineage.size(); ++level) {
    int64_t& its = snapshot.queues[lineage[level]].guaranteed[kind];
    const int64_t now = sum_of_queues(lineage[level]);
    its = its == before[level] ? now : std::max(its, now);
  }
}

JobId AddJob(Snapshot& snapshot, Job job) {
  job.id = snapshot.jobs.empty() ? 1 : snapshot.jobs.back().id + 1;
  snapshot.jobs.push_back(std::move(job));
  return snapshot.jobs.back().id;
}

}  // namespace renzan::cluster::simulate
