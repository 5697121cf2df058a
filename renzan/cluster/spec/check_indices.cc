#include "renzan/cluster/spec/check_indices.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

template <typename T>
void CheckIndex(int index, const std::vector<T>& items, int least, const std::string& where) {
  if (index < least || index >= static_cast<int>(items.size()))
    Fail(ErrorCode::kData, "the snapshot's {} is {}, but there are only {}", where, index,
         items.size());
}

void Require(bool condition, const std::string& where, const char* rule) {
  if (!condition) Fail(ErrorCode::kData, "the snapshot's {} {}", where, rule);
}

void CheckAmounts(const Resources& resources, const std::string& where) {
  for (const int64_t amount : resources.amount)
    Require(amount >= 0, where, "has a negative amount");
}

void CheckPlacement(const Snapshot& snapshot, const Placement& placement,
                    const std::string& where) {
  for (size_t i = 0; i < placement.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    CheckIndex(placement[i].node, snapshot.nodes, 0, here + ".node");
    Require(placement[i].workers >= 1, here + ".workers", "is below 1");
    Require(i == 0 || placement[i - 1].node < placement[i].node, here, "is not sorted by node");
  }
}

void CheckRunTime(const RunTimeQuantiles& quantiles, const std::string& where) {
  Require(quantiles.front() >= 0 && std::is_sorted(quantiles.begin(), quantiles.end()), where,
          "is negative or not sorted");
}

void CheckJob(const Snapshot& snapshot, size_t index) {
  const Job& job = snapshot.jobs[index];
  const std::string where = fmt::format("jobs[{}]", index);
  Require(index == 0 || snapshot.jobs[index - 1].id < job.id, where, "is not sorted by id");
  CheckIndex(job.request, snapshot.worker_requests, 0, where + ".request");
  CheckIndex(job.queue, snapshot.queues, 0, where + ".queue");
  CheckIndex(job.user, snapshot.users, 0, where + ".user");
  Require(job.min_workers >= 1 && job.min_workers <= job.max_workers, where + ".min_workers",
          "is below 1 or above max_workers");
  CheckRunTime(job.run_time, where + ".run_time");
  if (job.run_time_now) CheckRunTime(*job.run_time_now, where + ".run_time_now");
  CheckPlacement(snapshot, job.placement, where + ".placement");
  CheckPlacement(snapshot, job.target, where + ".target");
}

void CheckFairShare(const Snapshot& snapshot, const FairShare& fair_share,
                    const std::string& where) {
  Require(fair_share.half_life > 0, where + ".half_life_ms", "is not above 0");
  for (size_t i = 0; i < fair_share.used.size(); ++i) {
    const UsedLately& used = fair_share.used[i];
    const std::string here = fmt::format("{}.used[{}]", where, i);
    CheckIndex(used.user, snapshot.users, 0, here + ".user");
    Require(i == 0 || fair_share.used[i - 1].user < used.user, here, "is not sorted by user");
    Require(used.seconds >= 0 && std::isfinite(used.seconds), here + ".seconds",
            "is negative or not finite");
  }
}

}  // namespace

void CheckIndices(const Snapshot& snapshot) {
  const std::vector<std::string>& names = snapshot.resource_names;
  Require(names.size() >= kFirstNamedResource && names.size() <= kMaxResources &&
              names[kCpu] == "cpu" && names[kMemory] == "memory" && names[kGpu] == "gpu",
          "resource_names", "must be cpu, memory, gpu and at most 5 more");
  for (size_t i = 0; i < snapshot.nodes.size(); ++i) {
    CheckIndex(snapshot.nodes[i].pool, snapshot.pools, -1, fmt::format("nodes[{}].pool", i));
    CheckAmounts(snapshot.nodes[i].capacity, fmt::format("nodes[{}].capacity", i));
  }
  for (size_t i = 0; i < snapshot.pools.size(); ++i) {
    const Pool& pool = snapshot.pools[i];
    const std::string where = fmt::format("pools[{}]", i);
    CheckAmounts(pool.capacity, where + ".capacity");
    Require(pool.min_nodes >= 0 && pool.min_nodes <= pool.max_nodes, where + ".min_nodes",
            "is negative or above max_nodes");
    for (const auto& [level, count] : pool.domains)
      Require(count >= 1, where + ".domains", "has a level with less than one domain");
  }
  for (size_t i = 0; i < snapshot.queues.size(); ++i) {
    CheckAmounts(snapshot.queues[i].guaranteed, fmt::format("queues[{}].guaranteed", i));
    CheckAmounts(snapshot.queues[i].limit, fmt::format("queues[{}].limit", i));
    if (const auto& parent = snapshot.queues[i].parent)
      CheckIndex(*parent, snapshot.queues, 0, fmt::format("queues[{}].parent", i));
    if (snapshot.queues[i].fair_share)
      CheckFairShare(snapshot, *snapshot.queues[i].fair_share,
                     fmt::format("queues[{}].fair_share", i));
  }
  for (size_t i = 0; i < snapshot.queues.size(); ++i) {
    const Queue* at = &snapshot.queues[i];
    for (int level = 1; level < Queue::kMostLevels && at->parent; ++level)
      at = &snapshot.queues[*at->parent];
    Require(!at->parent, fmt::format("queues[{}].parent", i),
            "leads to too many parents, or back to the queue");
  }
  for (size_t i = 0; i < snapshot.worker_requests.size(); ++i)
    CheckAmounts(snapshot.worker_requests[i].per_worker,
                 fmt::format("worker_requests[{}].per_worker", i));
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) CheckJob(snapshot, i);
  for (size_t i = 0; i < snapshot.reservations.size(); ++i)
    CheckPlacement(snapshot, snapshot.reservations[i].placement,
                   fmt::format("reservations[{}].placement", i));
}

}  // namespace renzan::cluster::spec
