#include "renzan/cluster/spec/queue_parents.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace renzan::cluster::spec {
namespace {

std::optional<int> FindQueue(const Snapshot& snapshot, const std::string& name, bool removed) {
  const auto& queues = snapshot.queues;
  const auto at = std::ranges::find_if(
      queues, [&](const Queue& queue) { return queue.removed == removed && queue.name == name; });
  if (at == queues.end()) return std::nullopt;
  return static_cast<int>(at - queues.begin());
}

bool HasWhatJobsNeed(const Queue& queue) {
  return queue.limit != Queue::Unlimited() || queue.fair_share || queue.rights != QueueRights();
}

// Raises the parent's guarantee to that of its queues together.
void CompleteParent(Snapshot& snapshot, int parent, std::vector<ParentFault>& faults) {
  Queue& its = snapshot.queues[parent];
  Resources sum;
  for (const Queue& queue : snapshot.queues)
    if (queue.parent == parent) sum += queue.guaranteed;
  bool told = false;
  for (int kind = 0; kind < static_cast<int>(snapshot.resource_names.size()); ++kind) {
    const int64_t given = its.guaranteed[kind];
    if (given >= sum[kind]) continue;
    its.guaranteed[kind] = sum[kind];
    if (given == 0 || std::exchange(told, true)) continue;
    faults.push_back({.kind = ParentFault::Kind::kTooLittle,
                      .queue = its.name,
                      .resource = kind,
                      .given = given,
                      .of_queues = sum[kind]});
  }
}

}  // namespace

std::vector<ParentFault> SetParents(const std::map<std::string, std::string>& named,
                                    Snapshot& snapshot) {
  using Kind = ParentFault::Kind;
  std::vector<ParentFault> faults;
  std::set<int> parents;
  for (Queue& queue : snapshot.queues) {
    queue.parent.reset();
    const auto given = named.find(queue.name);
    if (queue.removed || given == named.end()) continue;
    const std::string& name = given->second;
    const std::optional<int> parent = FindQueue(snapshot, name, /*removed=*/false);
    if (!parent) {
      faults.push_back({.kind = Kind::kNoQueue, .queue = queue.name, .parent = name});
    } else if (const auto above = named.find(name); above != named.end()) {
      faults.push_back(
          {.kind = Kind::kHasParent, .queue = queue.name, .parent = name, .above = above->second});
    } else if (HasWhatJobsNeed(snapshot.queues[*parent])) {
      faults.push_back({.kind = Kind::kTakesJobs, .queue = queue.name, .parent = name});
    } else {
      queue.parent = parent;
      parents.insert(*parent);
    }
  }
  for (const int parent : parents) CompleteParent(snapshot, parent, faults);
  return faults;
}

int RemovedQueue(Snapshot& snapshot, const std::string& name) {
  if (const auto there = FindQueue(snapshot, name, /*removed=*/true)) return *there;
  snapshot.queues.push_back({.name = name, .removed = true});
  return static_cast<int>(snapshot.queues.size()) - 1;
}

std::string WhyParentHolds(const std::string& parent) {
  return fmt::format(
      "queue {} is now the parent of others, and takes no jobs itself: move it to one of them "
      "(renzan job update --to-queue)",
      parent);
}

}  // namespace renzan::cluster::spec
