#include "renzan/cluster/core/place/placements.h"

#include <algorithm>

namespace renzan::cluster {
namespace {

// `combine` of both worker counts for each node of either; nodes without workers are left out.
template <typename F>
Placement Merge(const Placement& a, const Placement& b, F combine) {
  Placement merged;
  auto from_a = a.begin(), from_b = b.begin();
  while (from_a != a.end() || from_b != b.end()) {
    const bool in_a = from_b == b.end() || (from_a != a.end() && from_a->node <= from_b->node);
    const bool in_b = from_a == a.end() || (from_b != b.end() && from_b->node <= from_a->node);
    const int node = in_a ? from_a->node : from_b->node;
    const int workers = combine(in_a ? from_a->workers : 0, in_b ? from_b->workers : 0);
    if (workers > 0) merged.push_back({node, workers});
    from_a += in_a;
    from_b += in_b;
  }
  return merged;
}

}  // namespace

std::map<int, int> WorkersByNode(const Placement& placement) {
  std::map<int, int> workers;
  for (const Placed& placed : placement) workers[placed.node] += placed.workers;
  return workers;
}

Placement Sum(const Placement& a, const Placement& b) {
  return Merge(a, b, [](int in_a, int in_b) { return in_a + in_b; });
}

Placement Union(const Placement& a, const Placement& b) {
  return Merge(a, b, [](int in_a, int in_b) { return std::max(in_a, in_b); });
}

Placement Difference(const Placement& a, const Placement& b) {
  return Merge(a, b, [](int in_a, int in_b) { return in_a - in_b; });
}

bool Overlap(const Placement& a, const Placement& b) {
  return std::any_of(a.begin(), a.end(), [&](const Placed& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Placed& other) { return one.node == other.node; });
  });
}

Placement HeldBy(const Job& job) {
  return job.state == JobState::kResizing ? Union(job.placement, job.target) : job.placement;
}

}  // namespace renzan::cluster
