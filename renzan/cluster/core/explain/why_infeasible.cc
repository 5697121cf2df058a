// Why a job can never run here: the first bound that it exceeds, from the narrowest (its quota) to
// the widest (all nodes together), and then nodes that would not be bought for it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/amounts.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/core/resize/pools.h"

namespace renzan::cluster {
namespace {

std::string WorkersText(int workers) { return Counted(workers, "worker"); }

std::string WhyNotByQuota(const Snapshot& snapshot, const Job& job) {
  if (job.quota_exempt) return "";
  const Resources needs = snapshot.worker_requests[job.request].per_worker * job.min_workers;
  const Queue& queue = snapshot.queues[job.queue];
  if (IsFixed(job))
    for (const int kind : GuaranteedKinds(snapshot))
      if (needs[kind] > 0 && needs[kind] > queue.guaranteed[kind])
        return fmt::format(
            "needs {}; a job that is not preemptible may only use its queue's guaranteed quota, "
            "and queue {} is guaranteed {}",
            DescribeAmount(snapshot, kind, needs[kind]), queue.name,
            DescribeAmount(snapshot, kind, queue.guaranteed[kind]));
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (needs[kind] > 0 && needs[kind] > queue.limit[kind])
      return fmt::format("needs {}; the limit of queue {} is {}",
                         DescribeAmount(snapshot, kind, needs[kind]), queue.name,
                         DescribeAmount(snapshot, kind, queue.limit[kind]));
  const User& user = snapshot.users[job.user];
  const int64_t cap = user.CapAt(snapshot.now);
  if (needs.gpu() == 0 || needs.gpu() <= cap) return "";
  return fmt::format("needs {}; the cap of user {} is {}{}",
                     DescribeAmount(snapshot, kGpu, needs.gpu()), user.name,
                     DescribeAmount(snapshot, kGpu, cap),
                     cap == user.max_gpus ? "" : ", including a temporary quota override");
}

// For when no site has the required labels and is not excluded.
std::string WhyNoneMatches(const std::vector<Site>& sites, const WorkerRequest& request) {
  const Labels& required = request.required;
  if (std::ranges::any_of(sites, [&](const Site& site) { return HasAll(*site.labels, required); }))
    return fmt::format("it excludes {}{} (constraints.exclude_nodes)",
                       required.empty() ? "every node" : "every node that has its labels",
                       request.excluded_nodes.size() > 8
                           ? ""
                           : fmt::format(": {}", fmt::join(request.excluded_nodes, ", ")));
  for (const auto& [key, value] : required) {
    std::set<std::string> there;
    for (const Site& site : sites)
      if (const auto at = site.labels->find(key); at != site.labels->end())
        there.insert(at->second);
    if (there.empty()) return fmt::format("no node has a label {} (it requests {})", key, value);
    if (there.count(value) > 0) continue;
    return fmt::format("no node has label {}={} (there {} {})", key, value,
                       there.size() == 1 ? "is" : "are", fmt::join(there, ", "));
  }
  std::vector<std::string> all;
  for (const auto& [key, value] : required) all.push_back(key + "=" + value);
  return fmt::format("no node has all of the labels {}", fmt::join(all, ", "));
}

// For when no site can hold even one worker.
std::string WhyTooLarge(const Snapshot& snapshot, const std::vector<Site>& sites,
                        const Resources& worker, const char* which) {
  for (const int kind : {kGpu, kMemory, kCpu, 3, 4, 5, 6, 7}) {
    const auto largest = std::max_element(
        sites.begin(), sites.end(),
        [&](const Site& a, const Site& b) { return (*a.capacity)[kind] < (*b.capacity)[kind]; });
    const int64_t most = (*largest->capacity)[kind];
    if (worker[kind] <= most) continue;
    if (most == 0)
      return fmt::format("needs {} on one node; no node{} has any",
                         DescribeAmount(snapshot, kind, worker[kind]), which);
    return fmt::format("needs {} on one node; the largest{} has {} ({})",
                       DescribeAmount(snapshot, kind, worker[kind]), which,
                       DescribeAmount(snapshot, kind, most), NameOf(*largest));
  }
  return fmt::format("needs {} on one node; no node{} has all of it",
                     DescribeResources(snapshot, worker), which);
}

// "" if some domain has room. Future nodes may be in any domain, unless their pool's labels say.
std::string WhyNoDomain(const Snapshot& snapshot, const std::vector<Site>& sites, const Job& job) {
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  const std::string& level = request.topology_level;
  std::map<std::string, int64_t> room;
  int64_t anywhere = 0;
  for (const Site& site : sites) {
    const int fit = WorkersThatFit(*site.capacity, request.per_worker, job.min_workers);
    const std::string domain =
        level == kHostLevel ? NameOf(site) : DomainOf(snapshot, *site.labels, level);
    const int64_t together = level == kHostLevel ? fit : int64_t{fit} * site.count;
    if (!domain.empty())
      room[domain] += together;
    else if (site.node == nullptr)
      anywhere += together;
  }
  if (room.empty() && anywhere == 0)
    return fmt::format("no node that it could use has a label {}", level);
  const auto largest = std::max_element(
      room.begin(), room.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const int64_t most = anywhere + (room.empty() ? 0 : largest->second);
  if (most >= job.min_workers) return "";
  return fmt::format("needs {} of {} in one {}; {} has room for {}", WorkersText(job.min_workers),
                     DescribeResources(snapshot, request.per_worker), level,
                     room.empty() ? "none" : "the largest (" + largest->first + ")", most);
}

// "" if these sites have room for it.
std::string WhyNoRoom(const Snapshot& snapshot, const std::vector<Site>& sites, const Job& job) {
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  if (sites.empty()) return "the cluster has no nodes";
  std::vector<Site> matching;
  for (const Site& site : sites)
    if (Matches(site, request)) matching.push_back(site);
  if (matching.empty()) return WhyNoneMatches(sites, request);

  int64_t room = 0;
  for (const Site& site : matching)
    room +=
        int64_t{WorkersThatFit(*site.capacity, request.per_worker, job.min_workers)} * site.count;
  const char* which = !request.required.empty()         ? " with its labels"
                      : !request.excluded_nodes.empty() ? " that it does not exclude"
                                                        : "";
  if (room == 0) return WhyTooLarge(snapshot, matching, request.per_worker, which);
  if (request.topology_required) {
    const std::string domain = WhyNoDomain(snapshot, matching, job);
    if (!domain.empty()) return domain;
  }
  if (room >= job.min_workers) return "";
  const bool grows = std::any_of(sites.begin(), sites.end(), [](const Site& site) {
    return site.node == nullptr && IsScaled(*site.pool);
  });
  return fmt::format("needs {} of {}; {} there is room for {}{}", WorkersText(job.min_workers),
                     DescribeResources(snapshot, request.per_worker),
                     grows ? "with every pool at its maximum" : "on the empty cluster", room,
                     !request.required.empty()         ? " on nodes with its labels"
                     : !request.excluded_nodes.empty() ? " on nodes that it does not exclude"
                                                       : "");
}

}  // namespace

std::string WhyInfeasible(const Snapshot& snapshot, const Job& job) {
  if (!job.held.empty()) return job.held;
  if (std::string why = WhyNotByQuota(snapshot, job); !why.empty()) return why;
  if (std::string why = WhyNoRoom(snapshot, PossibleSites(snapshot, true), job); !why.empty())
    return why;
  if (!job.checkpoints)
    if (std::string why = WhyNoRoom(snapshot, PossibleSites(snapshot, false), job); !why.empty())
      return why +
             "; spot nodes are only bought for jobs that checkpoint (checkpoint: {on_stop: true})";
  const bool may_be_short =
      std::any_of(snapshot.pools.begin(), snapshot.pools.end(),
                  [](const Pool& pool) { return IsScaled(pool) && pool.price_per_hour > 0; });
  if (!may_be_short || std::isinf(snapshot.budget_per_hour) || CouldHaveRoom(snapshot, job))
    return "";
  return fmt::format(
      "needs {} of {}; the budget of {} an hour does not cover the nodes that would have to be "
      "bought",
      WorkersText(job.min_workers),
      DescribeResources(snapshot, snapshot.worker_requests[job.request].per_worker),
      snapshot.budget_per_hour);
}

}  // namespace renzan::cluster
