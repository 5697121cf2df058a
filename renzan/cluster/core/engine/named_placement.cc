#include "renzan/cluster/core/engine/named_placement.h"

#include <fmt/format.h>

#include "renzan/base/counted.h"

namespace renzan::cluster {

NamedPlacement WithNames(const Snapshot& snapshot, const Placement& placement) {
  NamedPlacement named;
  for (const Placed& placed : placement)
    named.push_back({.node = snapshot.nodes[placed.node].name, .workers = placed.workers});
  return named;
}

int NumWorkers(const NamedPlacement& placement) {
  int workers = 0;
  for (const NodeShare& share : placement) workers += share.workers;
  return workers;
}

std::string Describe(const NamedPlacement& placement) {
  std::string text;
  for (const NodeShare& share : placement)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", share.node,
                        Counted(share.workers, "worker"));
  return text;
}

}  // namespace renzan::cluster
