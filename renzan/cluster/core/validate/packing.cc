#include "renzan/cluster/core/validate/packing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "renzan/cluster/core/labels.h"

namespace renzan::cluster::check {
namespace {

class Search {
 public:
  Search(const Snapshot& snapshot, std::vector<Resources> free, std::vector<Gang> gangs,
         std::vector<int> nodes, int64_t steps)
      : snapshot_(snapshot),
        free_(std::move(free)),
        gangs_(std::move(gangs)),
        nodes_(std::move(nodes)),
        steps_(steps) {
    std::map<std::pair<Labels, std::vector<bool>>, int> kinds;
    for (const Node& node : snapshot_.nodes) {
      std::pair<Labels, std::vector<bool>> kind = {node.labels, {}};
      for (const Gang& gang : gangs_)  // some may exclude the node
        kind.second.push_back(Matches(node, RequestOf(gang)));
      kind_.push_back(
          kinds.try_emplace(std::move(kind), static_cast<int>(kinds.size())).first->second);
    }
    for (const Gang& gang : gangs_) {
      const WorkerRequest& request = RequestOf(gang);
      if (request.topology_required && domains_.count(request.topology_level) == 0)
        domains_[request.topology_level] = DomainsAt(snapshot_, request.topology_level);
    }
  }

  Packs Run() {
    if (PlaceGang(0)) return Packs::kYes;
    return steps_ > 0 ? Packs::kNo : Packs::kUnknown;
  }

 private:
  const WorkerRequest& RequestOf(const Gang& gang) const {
    return snapshot_.worker_requests[gang.job->request];
  }

  // Places this gang and all after it.
  bool PlaceGang(size_t gang) {
    if (gang == gangs_.size()) return true;
    const WorkerRequest& request = RequestOf(gangs_[gang]);
    std::vector<int> candidates;
    for (const int node : nodes_)
      if (Matches(snapshot_.nodes[node], request) &&
          WorkersThatFit(free_[node], request.per_worker, 1) > 0)
        candidates.push_back(node);
    if (!request.topology_required) return PlaceWorkers(gang, candidates, 0, gangs_[gang].workers);
    const std::vector<int>& domains = domains_.at(request.topology_level);
    std::set<int> tried = {-1};  // nodes of no domain
    for (const int first : candidates) {
      if (!tried.insert(domains[first]).second) continue;
      std::vector<int> together;
      for (const int node : candidates)
        if (domains[node] == domains[first]) together.push_back(node);
      if (PlaceWorkers(gang, together, 0, gangs_[gang].workers)) return true;
    }
    return false;
  }

  // Places the rest of a gang on candidates from `from` on, then the gangs after it.
  bool PlaceWorkers(size_t gang, const std::vector<int>& candidates, size_t from, int workers) {
    if (workers == 0) return PlaceGang(gang + 1);
    const Resources& worker = RequestOf(gangs_[gang]).per_worker;
    int64_t room = 0;
    for (size_t i = from; i < candidates.size(); ++i)
      room += WorkersThatFit(free_[candidates[i]], worker, workers);
    // Nodes with equal labels and free resources are interchangeable: trying one is enough.
    std::set<std::pair<int, std::array<int64_t, kMaxResources>>> tried;
    for (size_t i = from; i < candidates.size() && room >= workers; ++i) {
      const int node = candidates[i];
      const int most = WorkersThatFit(free_[node], worker, workers);
      room -= most;
      if (!tried.emplace(kind_[node], free_[node].amount).second) continue;
      for (int count = most; count > 0; --count) {
        if (--steps_ <= 0) return false;
        free_[node] -= worker * count;
        const bool placed = PlaceWorkers(gang, candidates, i + 1, workers - count);
        free_[node] += worker * count;
        if (placed) return true;
      }
    }
    return false;
  }

  const Snapshot& snapshot_;
  std::vector<Resources> free_;
  const std::vector<Gang> gangs_;
  const std::vector<int> nodes_;  // in the order in which they are tried
  int64_t steps_;
  std::vector<int> kind_;                            // by node; equal labels, equal kind
  std::map<std::string, std::vector<int>> domains_;  // by level
};

}  // namespace

Packs PackTogether(const Snapshot& snapshot, const std::vector<Resources>& free,
                   const std::vector<Gang>& gangs, int64_t max_steps) {
  std::vector<int> in_order(snapshot.nodes.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  std::vector<int> fullest_first = in_order;
  std::stable_sort(fullest_first.begin(), fullest_first.end(), [&](int a, int b) {
    return std::pair(free[a].gpu(), free[a][kCpu]) < std::pair(free[b].gpu(), free[b][kCpu]);
  });
  // Gangs with the fewest options first: bound to a domain, then with large workers.
  std::vector<Gang> hardest_first = gangs;
  const auto hardness = [&](const Gang& gang) {
    const WorkerRequest& request = snapshot.worker_requests[gang.job->request];
    return std::tuple(request.topology_required, request.required.size(), request.per_worker.gpu(),
                      gang.workers);
  };
  std::stable_sort(hardest_first.begin(), hardest_first.end(),
                   [&](const Gang& a, const Gang& b) { return hardness(a) > hardness(b); });
  for (const std::vector<Gang>* order : {&gangs, &std::as_const(hardest_first)})
    for (const auto* nodes : {&in_order, &fullest_first}) {
      const Packs packs = Search(snapshot, free, *order, *nodes, max_steps / 4).Run();
      if (packs != Packs::kUnknown) return packs;
    }
  return Packs::kUnknown;
}

}  // namespace renzan::cluster::check
