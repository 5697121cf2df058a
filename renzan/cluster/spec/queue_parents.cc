#include "renzan/cluster/spec/queue_parents.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "renzan/cluster/core/order/queue_tree.h"

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

using NamedParents = std::map<std::string, std::string>;

// The queues on the way up from the queue back to it: "a, b, a". Empty: it does not come back.
std::string CycleFrom(const std::string& queue, const NamedParents& named) {
  std::string way = queue;
  auto at = named.find(queue);
  for (size_t step = 0; step < named.size() && at != named.end(); ++step) {
    way += ", " + at->second;
    if (at->second == queue) return way;
    at = named.find(at->second);
  }
  return "";
}

// Those on a cycle have no parent: the way up ends there.
bool HasTooManyParents(const std::string& queue, const NamedParents& named) {
  int levels = 1;
  for (auto at = named.find(queue); at != named.end() && CycleFrom(at->first, named).empty();
       at = named.find(at->second))
    if (++levels > Queue::kMostLevels) return true;
  return false;
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
  for (Queue& queue : snapshot.queues) {
    queue.parent.reset();
    const auto given = named.find(queue.name);
    if (queue.removed || given == named.end()) continue;
    const std::string& name = given->second;
    const std::optional<int> parent = FindQueue(snapshot, name, /*removed=*/false);
    if (!parent) {
      faults.push_back({.kind = Kind::kNoQueue, .queue = queue.name, .parent = name});
    } else if (std::string cycle = CycleFrom(queue.name, named); !cycle.empty()) {
      faults.push_back(
          {.kind = Kind::kCycle, .queue = queue.name, .parent = name, .above = std::move(cycle)});
    } else if (HasTooManyParents(queue.name, named)) {
      faults.push_back({.kind = Kind::kTooMany, .queue = queue.name, .parent = name});
    } else if (HasWhatJobsNeed(snapshot.queues[*parent])) {
      faults.push_back({.kind = Kind::kTakesJobs, .queue = queue.name, .parent = name});
    } else {
      queue.parent = parent;
    }
  }
  for (const int parent : ParentsUpwards(snapshot)) CompleteParent(snapshot, parent, faults);
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
