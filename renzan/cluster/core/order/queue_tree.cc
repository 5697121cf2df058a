#include "renzan/cluster/core/order/queue_tree.h"

#include <algorithm>
#include <utility>

namespace renzan::cluster {

std::vector<int> LineageOf(const Snapshot& snapshot, int queue) {
  std::vector<int> lineage = {queue};
  while (const auto& parent = snapshot.queues[lineage.back()].parent) lineage.push_back(*parent);
  return lineage;
}

int TopOf(const Snapshot& snapshot, int queue) {
  while (const auto& parent = snapshot.queues[queue].parent) queue = *parent;
  return queue;
}

int DepthOf(const Snapshot& snapshot, int queue) {
  int depth = 0;
  while (const auto& parent = snapshot.queues[queue].parent) {
    queue = *parent;
    ++depth;
  }
  return depth;
}

bool IsWithin(const Snapshot& snapshot, int queue, int above) {
  while (queue != above) {
    const auto& parent = snapshot.queues[queue].parent;
    if (!parent) return false;
    queue = *parent;
  }
  return true;
}

int SideOf(const Snapshot& snapshot, int queue, int other) {
  while (const auto& parent = snapshot.queues[queue].parent) {
    if (IsWithin(snapshot, other, *parent)) break;
    queue = *parent;
  }
  return queue;
}

std::vector<int> ParentsUpwards(const Snapshot& snapshot) {
  std::vector<std::pair<int, int>> parents;  // by depth, the deepest first
  for (const Queue& queue : snapshot.queues)
    if (queue.parent) parents.emplace_back(-DepthOf(snapshot, *queue.parent), *queue.parent);
  std::sort(parents.begin(), parents.end());
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  std::vector<int> upwards;
  for (const auto& [depth, parent] : parents) upwards.push_back(parent);
  return upwards;
}

}  // namespace renzan::cluster
