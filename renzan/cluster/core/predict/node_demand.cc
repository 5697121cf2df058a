#include "renzan/cluster/core/predict/node_demand.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "renzan/cluster/core/place/placements.h"

namespace renzan::cluster {
namespace {

constexpr size_t kLeastWeeks = 2;

std::map<int, int> NodesInUse(const Snapshot& snapshot) {
  std::set<int> nodes;
  for (const Job& job : snapshot.jobs)
    for (const Placed& placed : HeldBy(job)) nodes.insert(placed.node);
  std::map<int, int> by_pool;
  for (const int node : nodes) ++by_pool[snapshot.nodes[node].pool];
  return by_pool;
}

}  // namespace

void NodeDemand::Add(int64_t hour, int nodes) {
  int& most = hours_[hour];
  most = std::max(most, nodes);
  hours_.erase(hours_.begin(), hours_.upper_bound(hours_.rbegin()->first - kWeeks * kHoursOfWeek));
}

std::vector<int> NodeDemand::Expected(double share, int64_t now) const {
  std::vector<std::vector<int>> seen(kHoursOfWeek);
  for (const auto& [hour, nodes] : hours_)
    if (hour < now) seen[hour % kHoursOfWeek].push_back(nodes);
  std::vector<int> expected;
  for (std::vector<int>& weeks : seen) {
    std::sort(weeks.begin(), weeks.end(), std::greater());
    const auto needed = static_cast<size_t>(std::ceil(share * static_cast<double>(weeks.size())));
    const bool known = weeks.size() >= kLeastWeeks && needed > 0;
    expected.push_back(known ? weeks[needed - 1] : 0);
  }
  return expected;
}

int ExpectedNodes(const Pool& pool, TimeMs from, TimeMs until) {
  if (pool.expected_nodes.empty()) return 0;
  int most = 0;
  const int64_t first = from / kHour;
  const int64_t last = std::min(until / kHour, first + NodeDemand::kHoursOfWeek - 1);
  for (int64_t hour = first; hour <= last; ++hour)
    most = std::max(most, pool.expected_nodes[hour % NodeDemand::kHoursOfWeek]);
  return std::min(most, pool.max_nodes);
}

void DemandWatch::Observe(TimeMs time, Snapshot& snapshot) {
  if (std::none_of(snapshot.pools.begin(), snapshot.pools.end(),
                   [](const Pool& pool) { return pool.boot_ahead > 0; }))
    return;
  const int64_t now = time / kHour;
  // After a longer time without a call, the machine was asleep, or its clock has jumped.
  constexpr int64_t kLongestQuiet = 24;
  const bool quiet = hour_ >= 0 && hour_ <= now && now - hour_ <= kLongestQuiet;
  const int64_t since = quiet ? hour_ : now;
  std::map<int, int> in_use = NodesInUse(snapshot);
  for (int index = 0; index < static_cast<int>(snapshot.pools.size()); ++index) {
    Pool& pool = snapshot.pools[index];
    if (pool.boot_ahead <= 0) continue;
    for (int64_t hour = since; hour <= now; ++hour) demand_[index].Add(hour, in_use[index]);
    if (now != hour_ || pool.expected_nodes.empty())
      pool.expected_nodes = demand_[index].Expected(pool.boot_ahead, now);
  }
  hour_ = now;
}

void DemandWatch::ClockWentBack(TimeMs now) {
  for (auto& [pool, demand] : demand_) demand.ForgetFrom(now / kHour + 1);
  hour_ = -1;
}

}  // namespace renzan::cluster
