#include "renzan/cluster/core/place/placement.h"

#include <algorithm>

#include "renzan/cluster/core/labels.h"

namespace renzan::cluster {
namespace {

class Search {
 public:
  Search(const ClusterView& view, const PlacementQuery& query)
      : view_(view),
        query_(query),
        request_(view.snapshot().worker_requests[query.request]),
        index_(view.index(query.room)),
        each_(request_.per_worker[view.packing_kind()]) {}

  std::optional<Placement> Anywhere(const NodeSet* domain) {
    Placement placement;
    int missing = query_.max_workers;
    for (const NodeSet& tier : view_.Tiers(query_.request, query_.checkpoints)) {
      if (missing == 0) break;
      Fill(domain == nullptr ? tier : tier & *domain, missing, placement);
    }
    if (query_.max_workers - missing < query_.min_workers) return std::nullopt;
    std::sort(placement.begin(), placement.end(),
              [](const Placed& a, const Placed& b) { return a.node < b.node; });
    return placement;
  }

  // All workers on one node.
  std::optional<Placement> OnOneHost() {
    for (int workers = query_.max_workers; workers >= query_.min_workers; --workers)
      for (const NodeSet& tier : view_.Tiers(query_.request, query_.checkpoints))
        if (const int node = SmallestFor(tier, workers); node >= 0)
          return Placement{{node, workers}};
    return std::nullopt;
  }

  std::optional<Placement> InOneDomain() {
    if (request_.topology_level == kHostLevel) return OnOneHost();
    std::optional<Placement> best;
    int64_t best_room = 0;
    for (const NodeSet& domain : view_.Domains(request_.topology_level)) {
      std::optional<Placement> found = Anywhere(&domain);
      if (!found) continue;
      const int64_t room = RoomIn(domain);
      const int more = best ? NumWorkers(*found) - NumWorkers(*best) : 1;
      if (more > 0 || (more == 0 && room < best_room)) {
        best = std::move(found);
        best_room = room;
      }
    }
    return best;
  }

 private:
  int Count(int node) const { return view_.Count(request_, node, query_.room, query_.unreserved); }
  bool Used(int node) const { return std::find(used_.begin(), used_.end(), node) != used_.end(); }

  // The first node on the lowest level that holds `workers`; -1 if none does.
  int SmallestFor(const NodeSet& nodes, int workers) const {
    for (int level = index_.LevelOf(each_ * workers); level < LevelIndex::kLevels; ++level)
      for (int node = index_.at(level).NextInBoth(nodes, 0); node >= 0;
           node = index_.at(level).NextInBoth(nodes, node + 1))
        if (Count(node) >= workers) return node;
    return -1;
  }

  void Take(int node, int workers, int& missing, Placement& placement) const {
    placement.push_back({node, workers});
    missing -= workers;
  }

  // Takes nodes until no worker is missing or nothing fits. Nodes with most room come first, so
  // that a gang uses few nodes; the last workers go where they leave the least room.
  void Fill(const NodeSet& nodes, int& missing, Placement& placement) {
    if (const int node = SmallestFor(nodes, missing); node >= 0)
      return Take(node, missing, missing, placement);
    const int lowest = index_.LevelOf(each_);
    for (int level = LevelIndex::kLevels - 1; level >= lowest; --level) {
      for (int node = index_.at(level).NextInBoth(nodes, 0); node >= 0;
           node = index_.at(level).NextInBoth(nodes, node + 1)) {
        const int count = std::min(Count(node), missing);
        if (count == 0) continue;
        if (count == missing) return FinishWith(nodes, node, missing, placement);
        Take(node, count, missing, placement);
        used_.push_back(node);
      }
    }
  }

  // `fallback` holds the missing workers; uses a smaller unused node if one holds them too.
  void FinishWith(const NodeSet& nodes, int fallback, int& missing, Placement& placement) {
    for (int level = index_.LevelOf(each_ * missing); level < LevelIndex::kLevels; ++level)
      for (int node = index_.at(level).NextInBoth(nodes, 0); node >= 0;
           node = index_.at(level).NextInBoth(nodes, node + 1))
        if (Count(node) >= missing && !Used(node)) return Take(node, missing, missing, placement);
    Take(fallback, missing, missing, placement);
  }

  int64_t RoomIn(const NodeSet& domain) const {
    int64_t room = 0;
    for (int node = domain.Next(0); node >= 0; node = domain.Next(node + 1))
      room += view_.Free(node, query_.room)[view_.packing_kind()];
    return room;
  }

  const ClusterView& view_;
  const PlacementQuery& query_;
  const WorkerRequest& request_;
  const LevelIndex& index_;
  const int64_t each_;
  std::vector<int> used_;  // nodes taken by Fill
};

}  // namespace

bool NeedsOneHost(const WorkerRequest& request) {
  return request.topology_required && request.topology_level == kHostLevel;
}

std::optional<Placement> FindPlacement(const ClusterView& view, const PlacementQuery& query) {
  const WorkerRequest& request = view.snapshot().worker_requests[query.request];
  Search search(view, query);
  if (query.within != nullptr) return search.Anywhere(query.within);
  if (!request.topology_level.empty()) {
    std::optional<Placement> found = search.InOneDomain();
    if (found || request.topology_required) return found;
  }
  return Search(view, query).Anywhere(nullptr);
}

}  // namespace renzan::cluster
