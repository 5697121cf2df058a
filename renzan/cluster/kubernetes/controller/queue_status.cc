#include "renzan/cluster/kubernetes/controller/queue_status.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"
#include "renzan/cluster/spec/cluster_documents.h"

namespace renzan::cluster::kubernetes {
namespace {

// What exists, at most the largest number: nodes, and those that pools may buy.
struct Offered {
  Resources by_nodes, by_pools;
};

void Add(const Resources& capacity, int count, Resources& sum) {
  for (int kind = 0; kind < kMaxResources; ++kind) {
    int64_t all = 0;
    if (__builtin_mul_overflow(capacity[kind], int64_t{count}, &all) ||
        __builtin_add_overflow(sum[kind], all, &sum[kind]))
      sum[kind] = std::numeric_limits<int64_t>::max() / 2;
  }
}

Offered OfferedIn(const Snapshot& snapshot) {
  Offered offered;
  for (const Site& site : PossibleSites(snapshot, /*spot=*/true))
    Add(*site.capacity, site.count, site.node != nullptr ? offered.by_nodes : offered.by_pools);
  return offered;
}

Condition Guarantee(const Queue& queue, const Resources& of_all, const Offered& offered,
                    const Snapshot& snapshot) {
  for (int kind = 0; kind < static_cast<int>(snapshot.resource_names.size()); ++kind) {
    if (queue.guaranteed[kind] == 0) continue;
    const int64_t nodes = offered.by_nodes[kind], pools = offered.by_pools[kind];
    const std::string wanted = QuantityWithName(of_all[kind], kind, snapshot);
    if (nodes + pools == 0)
      return {
          "Guaranteed", false, "NotOffered",
          fmt::format("no node and no pool offers any {}", wanted.substr(wanted.find(' ') + 1))};
    if (of_all[kind] <= nodes + pools) continue;
    return {"Guaranteed", false, "Overcommitted",
            fmt::format("all queues together are guaranteed {}, but there are only {}{}: lower "
                        "guarantees, or add nodes",
                        wanted, QuantityWithName(nodes, kind, snapshot),
                        pools == 0 ? ""
                                   : " and, that pools may buy, " +
                                         QuantityWithName(pools, kind, snapshot))};
  }
  return {"Guaranteed", true, "Guaranteed", "what all queues are guaranteed exists"};
}

Condition WithoutParent(const spec::ParentFault& fault) {
  const char* const type = "HasParent";
  switch (fault.kind) {
    case spec::ParentFault::Kind::kNoQueue:
      return {type, false, "NoSuchQueue",
              fmt::format("there is no Queue {}, which spec.parent names: the queue has no parent "
                          "until it exists",
                          fault.parent)};
    case spec::ParentFault::Kind::kCycle:
      return {type, false, "ParentCycle",
              fmt::format("its parents come back to it ({}): none of these queues has a parent "
                          "until one of them names none",
                          fault.above)};
    case spec::ParentFault::Kind::kTooMany:
      return {type, false, "TooManyParents",
              fmt::format("{}, which spec.parent names, and the parents above it are more than {}: "
                          "this queue has no parent until one of them names none",
                          fault.parent, Queue::kMostLevels - 1)};
    default:
      return {type, false, "ParentTakesJobs",
              fmt::format("{}, which spec.parent names, is a queue with jobs of its own: give its "
                          "limit, fairShare, members, maxPriority and notPreemptible to its queues "
                          "instead; until then, this queue has no parent",
                          fault.parent)};
  }
}

Condition LessThanItsQueues(const spec::ParentFault& fault, const Snapshot& snapshot) {
  const std::string of_queues = QuantityWithName(fault.of_queues, fault.resource, snapshot);
  return {"Guaranteed", false, "LessThanItsQueues",
          fmt::format("spec.guaranteed has {}, but its queues together have {}, which counts for "
                      "it, too: guarantee it as much, or leave that out",
                      QuantityWithName(fault.given, fault.resource, snapshot), of_queues)};
}

}  // namespace

std::map<std::string, QueueStatus> StatusesOfQueues(const Snapshot& snapshot,
                                                    const std::vector<spec::ParentFault>& faults) {
  const std::vector<spec::QueueUse> uses = spec::UseOfQueues(snapshot);
  const Offered offered = OfferedIn(snapshot);
  Resources of_all;
  for (const Queue& queue : snapshot.queues)
    if (!queue.parent) Add(queue.guaranteed, 1, of_all);
  std::map<std::string, QueueStatus> statuses;
  for (size_t at = 0; at < uses.size(); ++at) {
    const Queue& queue = snapshot.queues[at];
    if (queue.removed) continue;
    // Kinds that are in use, and those that its spec mentions.
    std::vector<int> kinds, guaranteed;
    for (int kind = 0; kind < static_cast<int>(snapshot.resource_names.size()); ++kind) {
      if (queue.guaranteed[kind] > 0) guaranteed.push_back(kind);
      if (queue.guaranteed[kind] > 0 || queue.limit[kind] != kUnlimited || uses[at].used[kind] > 0)
        kinds.push_back(kind);
    }
    statuses[queue.name] = {
        .use = std::make_shared<const nlohmann::json>(
            nlohmann::json{{"pending", uses[at].pending},
                           {"running", uses[at].running},
                           {"guaranteed", QuantitiesOf(queue.guaranteed, guaranteed, snapshot)},
                           {"used", QuantitiesOf(uses[at].used, kinds, snapshot)},
                           {"borrowed", QuantitiesOf(uses[at].borrowed, kinds, snapshot)}}),
        .guaranteed = Guarantee(queue, of_all, offered, snapshot)};
    if (queue.parent) statuses[queue.name].has_parent = {"HasParent", true, "HasParent", ""};
  }
  for (const spec::ParentFault& fault : faults) {
    const auto at = statuses.find(fault.queue);
    if (at == statuses.end()) continue;
    if (fault.kind == spec::ParentFault::Kind::kTooLittle)
      at->second.guaranteed = LessThanItsQueues(fault, snapshot);
    else
      at->second.has_parent = WithoutParent(fault);
  }
  return statuses;
}

}  // namespace renzan::cluster::kubernetes
