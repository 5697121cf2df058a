#include "renzan/cluster/core/resize/pools.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/placement.h"
#include "renzan/cluster/core/place/projected_capacity.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

// A number of nodes of each pool, and their price per hour.
struct Purchase {
  std::map<int, int> nodes;
  double price = 0;
  int count = 0;

  bool operator<(const Purchase& other) const {
    return std::tie(price, count) < std::tie(other.price, other.count);
  }
};

class Scaler {
 public:
  Scaler(const Snapshot& snapshot, Decisions& decisions, PreemptionOracle* oracle)
      : snapshot_(snapshot),
        decisions_(decisions),
        oracle_(oracle),
        capacity_(snapshot, decisions),
        quota_(ClusterView(snapshot)),
        existing_(snapshot.pools.size()),
        bought_(snapshot.pools.size()) {
    for (const Node& node : snapshot.nodes) {
      if (node.pool < 0 || node.state == NodeState::kGone) continue;
      // A draining node is paid for until it is gone, but may be replaced before.
      price_ += snapshot.pools[node.pool].price_per_hour;
      existing_[node.pool] += node.state != NodeState::kDraining;
    }
    CountUsage();
  }

  void Run() {
    for (size_t pool = 0; pool < existing_.size(); ++pool) KeepMinimum(static_cast<int>(pool));
    for (Wait& wait : decisions_.waits) Consider(wait);
    decisions_.scale_out = BoughtWith({});
    ReturnIdle();
  }

  // Whether there is room for the job, or nodes for it could be bought.
  bool FindsRoomFor(const Job& job) {
    for (size_t pool = 0; pool < existing_.size(); ++pool) KeepMinimum(static_cast<int>(pool));
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    return capacity_.Place(request, job.min_workers) != ProjectedCapacity::Fit::kNowhere ||
           Cheapest(job);
  }

 private:
  // Use of queues and users after the cycle, so that no node is bought that quota forbids using.
  void CountUsage() {
    for (const Stop& stop : decisions_.stops) {
      const Job& job = *snapshot_.Find(stop.job);
      quota_.Remove(job, NumWorkers(job.state == JobState::kResizing ? job.target : job.placement));
    }
    for (const Resize& resize : decisions_.resizes) {
      const Job& job = *snapshot_.Find(resize.job);
      quota_.Remove(job, NumWorkers(job.placement));
      quota_.Add(job, NumWorkers(resize.target));
    }
    for (const Start& start : decisions_.starts)
      quota_.Add(*snapshot_.Find(start.job), NumWorkers(start.placement));
  }

  // How many nodes of the pool can be bought in addition to `purchase`, given its size and budget.
  int Buyable(int pool, const Purchase& purchase) const {
    const Pool& of = snapshot_.pools[pool];
    if (!IsScaled(of)) return 0;
    const int nodes = std::max(0, of.max_nodes - existing_[pool] - bought_[pool]);
    if (of.price_per_hour <= 0) return nodes;
    // A sum of prices equal to the budget may exceed it by a rounding error.
    const double affordable =
        (snapshot_.budget_per_hour - price_ - purchase.price) / of.price_per_hour + 1e-9;
    return affordable >= nodes ? nodes : std::max(0, static_cast<int>(affordable));
  }

  void Buy(int pool, int nodes) {
    bought_[pool] += nodes;
    price_ += snapshot_.pools[pool].price_per_hour * nodes;
    for (int node = 0; node < nodes; ++node) capacity_.Buy(pool);
  }

  // All nodes bought in this cycle, and those of `purchase`.
  std::vector<ScaleOut> BoughtWith(const Purchase& purchase) const {
    std::vector<int> nodes = bought_;
    for (const auto& [pool, more] : purchase.nodes) nodes[pool] += more;
    std::vector<ScaleOut> all;
    for (size_t pool = 0; pool < nodes.size(); ++pool)
      if (nodes[pool] > 0) all.push_back({static_cast<int>(pool), nodes[pool]});
    return all;
  }

  void KeepMinimum(int pool) {
    const int missing = snapshot_.pools[pool].min_nodes - existing_[pool];
    const int nodes = std::min(missing, Buyable(pool, {}));
    if (nodes > 0) Buy(pool, nodes);
  }

  // Each job takes what will be free, in pending-queue order, so nothing is counted twice.
  void Consider(Wait& wait) {
    const bool has_place =
        wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting;
    const bool wants_room = wait.reason == WaitReason::kResources ||
                            wait.reason == WaitReason::kFragmented ||
                            wait.reason == WaitReason::kReserved;
    if (!has_place && !wants_room) return;
    const Job& job = *snapshot_.Find(wait.job);
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    if (wants_room && (IsHopeless(job) || quota_.Forbids(job, job.min_workers))) return;
    ProjectedCapacity::Fit fit = capacity_.Place(request, job.min_workers);
    if (fit == ProjectedCapacity::Fit::kNowhere && wants_room) {
      if (const std::optional<Purchase> purchase = PurchaseFor(job)) {
        for (const auto& [pool, nodes] : purchase->nodes) Buy(pool, nodes);
        cannot_buy_.Clear();
        stops_do_not_help_.Clear();
        fit = ProjectedCapacity::Fit::kOnBought;
        PlaceAsManyAsFit(job);
      }
    } else if (fit == ProjectedCapacity::Fit::kNowhere) {
      fit = ProjectedCapacity::Fit::kOnNodes;
      PlaceAsManyAsFit(job);
    }
    if (fit == ProjectedCapacity::Fit::kNowhere) {
      waits_in_vain_ = std::isfinite(snapshot_.budget_per_hour);
      return;
    }
    quota_.Add(job, job.min_workers);
    if (wants_room && fit == ProjectedCapacity::Fit::kOnBought)
      wait = {job.id, WaitReason::kNodesBooting};
  }

  // Not all workers, if others are to be stopped for the rest, or if the rack of new nodes is not
  // known until they are up.
  void PlaceAsManyAsFit(const Job& job) {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    capacity_.Place(request, capacity_.Count(request, job.min_workers, ""));
  }

  // The cheapest purchase with which the job fits or, if there is none, with which it would fit if
  // others were stopped for it.
  std::optional<Purchase> PurchaseFor(const Job& job) {
    std::optional<Purchase> purchase;
    if (!cannot_buy_.Known(KindOf(job), job.min_workers)) purchase = Cheapest(job);
    if (purchase) return purchase;
    cannot_buy_.Add(KindOf(job), job.min_workers);
    if (oracle_ == nullptr) return std::nullopt;
    purchase = CheapestWithStops(job);
    if (!purchase) stops_do_not_help_.Add(StopsKeyOf(job), job.min_workers);
    return purchase;
  }

  // Whether it is known that there is no such purchase.
  bool IsHopeless(const Job& job) const {
    return cannot_buy_.Known(KindOf(job), job.min_workers) &&
           (oracle_ == nullptr || stops_do_not_help_.Known(StopsKeyOf(job), job.min_workers));
  }

  using Kind = std::pair<int, bool>;
  static Kind KindOf(const Job& job) { return {job.request, job.checkpoints}; }
  // No other jobs would be stopped sooner for a job behind it with the same values.
  using StopsKey = std::tuple<Kind, int, Right>;
  StopsKey StopsKeyOf(const Job& job) const {
    return {KindOf(job), job.queue, oracle_->RightOf(job)};
  }

  // The cheapest purchase with which the job fits; nothing if there is none.
  std::optional<Purchase> Cheapest(const Job& job) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    if (!request.topology_required) return CheapestIn(job, "", job.min_workers);
    if (request.topology_level == kHostLevel) return CheapestHost(job);
    std::optional<Purchase> best;
    std::vector<std::string> domains = capacity_.Domains(request.topology_level);
    if (domains.empty()) domains = {""};  // no rack is known yet: new nodes may all be in one
    for (const std::string& domain : domains) {
      const std::optional<Purchase> found = CheapestIn(job, domain, job.min_workers);
      if (found && (!best || *found < *best)) best = found;
    }
    return best;
  }

  // One node for all workers.
  std::optional<Purchase> CheapestHost(const Job& job) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    std::optional<Purchase> best;
    for (const int pool : PoolsFor(job, "")) {
      const Resources& capacity = snapshot_.pools[pool].capacity;
      if (WorkersThatFit(capacity, request.per_worker, job.min_workers) < job.min_workers ||
          Buyable(pool, {}) == 0)
        continue;
      const Purchase one{{{pool, 1}}, snapshot_.pools[pool].price_per_hour, 1};
      if (!best || one < *best) best = one;
    }
    return best;
  }

  // Pools whose nodes the job can use in a domain ("": anywhere). A pool without a label for the
  // level may have nodes in any domain.
  std::vector<int> PoolsFor(const Job& job, const std::string& domain) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    std::vector<int> pools;
    for (size_t index = 0; index < snapshot_.pools.size(); ++index) {
      const Pool& pool = snapshot_.pools[index];
      // Unsaved work would be lost again and again on nodes that are interrupted.
      if (pool.spot && !job.checkpoints) continue;
      const std::string its = DomainOf(snapshot_, pool.labels, request.topology_level);
      if (!domain.empty() && !its.empty() && its != domain) continue;
      if (HasAll(pool.labels, request.required) &&
          WorkersThatFit(pool.capacity, request.per_worker, 1) > 0)
        pools.push_back(static_cast<int>(index));
    }
    return pools;
  }

  std::optional<Purchase> CheapestIn(const Job& job, const std::string& domain, int workers) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    return CheapestNodes(request, workers - capacity_.Count(request, workers, domain),
                         PoolsFor(job, domain));
  }

  // The smallest purchase with which the next cycle makes room for the job.
  std::optional<Purchase> CheapestWithStops(const Job& job) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    // A gang on one host has no use for additional nodes.
    if (NeedsOneHost(request)) return std::nullopt;
    const int least = oracle_->MinWorkersOnNewNodes(job);
    std::vector<std::string> domains = {""};
    if (request.topology_required) domains = capacity_.Domains(request.topology_level);
    for (const std::string& domain : domains)
      if (std::optional<Purchase> found = WithStopsIn(job, domain, least)) return found;
    return std::nullopt;
  }

  std::optional<Purchase> WithStopsIn(const Job& job, const std::string& domain, int least) const {
    const std::vector<int> pools = PoolsFor(job, domain);
    const auto for_workers = [&](int workers) {
      return CheapestNodes(snapshot_.worker_requests[job.request], workers, pools);
    };
    const auto suffices = [&](int workers) {
      return oracle_->WouldFit(job, BoughtWith(*for_workers(workers)));
    };
    int most = job.min_workers - 1;
    while (most >= least && !for_workers(most)) --most;
    if (most < least) return std::nullopt;
    if (suffices(least)) return for_workers(least);
    if (most == least || !suffices(most)) return std::nullopt;
    for (int too_few = least; most - too_few > 1;) {
      const int between = too_few + (most - too_few) / 2;
      (suffices(between) ? most : too_few) = between;
    }
    return for_workers(most);
  }

  // Nodes for this many workers: all from one pool, or from several, cheapest per worker first.
  std::optional<Purchase> CheapestNodes(const WorkerRequest& request, int workers,
                                        std::vector<int> pools) const {
    const auto per_worker = [&](int pool) {
      const Pool& of = snapshot_.pools[pool];
      return of.price_per_hour / WorkersThatFit(of.capacity, request.per_worker, workers);
    };
    std::stable_sort(pools.begin(), pools.end(),
                     [&](int a, int b) { return per_worker(a) < per_worker(b); });
    std::optional<Purchase> best = Fill(request, workers, pools);
    for (const int pool : pools) {
      const std::optional<Purchase> found = Fill(request, workers, {pool});
      if (found && *found < *best) best = found;
    }
    return best;
  }

  // As many nodes of each pool in turn as are needed and available.
  std::optional<Purchase> Fill(const WorkerRequest& request, int workers,
                               const std::vector<int>& pools) const {
    Purchase purchase;
    for (const int pool : pools) {
      const Pool& of = snapshot_.pools[pool];
      const int each = WorkersThatFit(of.capacity, request.per_worker, workers);
      if (workers <= 0 || each == 0) continue;
      const int nodes = std::min((workers + each - 1) / each, Buyable(pool, purchase));
      if (nodes == 0) continue;
      workers -= nodes * each;
      purchase.nodes[pool] += nodes;
      purchase.price += of.price_per_hour * nodes;
      purchase.count += nodes;
    }
    if (workers > 0) return std::nullopt;
    return purchase;
  }

  void ReturnIdle() {
    std::vector<int> idle;
    for (size_t index = 0; index < snapshot_.nodes.size(); ++index) {
      const Node& node = snapshot_.nodes[index];
      if (node.pool < 0 || node.state != NodeState::kReady || !IsScaled(snapshot_.pools[node.pool]))
        continue;
      if (!capacity_.IsNeeded(static_cast<int>(index)) && bought_[node.pool] == 0)
        idle.push_back(static_cast<int>(index));
    }
    // Most expensive first, then longest idle.
    std::stable_sort(idle.begin(), idle.end(), [&](int a, int b) {
      const Node &left = snapshot_.nodes[a], &right = snapshot_.nodes[b];
      return std::tuple(-snapshot_.pools[left.pool].price_per_hour, left.idle_since) <
             std::tuple(-snapshot_.pools[right.pool].price_per_hour, right.idle_since);
    });
    for (const int index : idle) {
      const Node& node = snapshot_.nodes[index];
      const Pool& pool = snapshot_.pools[node.pool];
      if (existing_[node.pool] <= pool.min_nodes) continue;
      const TimeMs due = node.idle_since + pool.idle_ms;
      if (due > snapshot_.now) {
        decisions_.look_again = std::min(decisions_.look_again, due);
      } else {
        decisions_.scale_in.push_back({index});
        --existing_[node.pool];
      }
    }
  }

  const Snapshot& snapshot_;
  Decisions& decisions_;
  PreemptionOracle* const oracle_;
  ProjectedCapacity capacity_;
  Quota quota_;
  double price_ = 0;                    // per hour, of all nodes that are paid for
  std::vector<int> existing_, bought_;  // nodes by pool, without draining ones
  bool waits_in_vain_ = false;          // for some job the budget may not suffice
  Failures<Kind> cannot_buy_;
  Failures<StopsKey> stops_do_not_help_;
};

// The cluster without jobs, with every node ready that need not be bought.
Snapshot Emptied(const Snapshot& snapshot, bool scaled_at_minimum) {
  Snapshot empty{.now = snapshot.now,
                 .resource_names = snapshot.resource_names,
                 .topology_levels = snapshot.topology_levels,
                 .nodes = snapshot.nodes,
                 .pools = snapshot.pools,
                 .queues = snapshot.queues,
                 .users = snapshot.users,
                 .worker_requests = snapshot.worker_requests,
                 .budget_per_hour = snapshot.budget_per_hour};
  std::vector<int> ready(snapshot.pools.size());
  for (Node& node : empty.nodes) {
    const bool scaled = node.pool >= 0 && IsScaled(snapshot.pools[node.pool]);
    const bool own = node.pool >= 0 && !scaled;
    const bool stays = TakesWork(node.state);
    const bool comes_back =
        own || node.state == NodeState::kCordoned || (node.pool < 0 && MayBeRestored(node));
    const bool too_many =
        scaled && scaled_at_minimum && ready[node.pool] >= snapshot.pools[node.pool].min_nodes;
    node.state = (stays || comes_back) && !too_many ? NodeState::kReady : NodeState::kGone;
    if (node.pool >= 0) ready[node.pool] += node.state == NodeState::kReady;
  }
  for (size_t index = 0; index < snapshot.pools.size(); ++index) {
    const Pool& pool = snapshot.pools[index];
    for (; !IsScaled(pool) && ready[index] < pool.max_nodes; ++ready[index])
      empty.nodes.push_back({.name = pool.name,
                             .pool = static_cast<int>(index),
                             .capacity = pool.capacity,
                             .labels = pool.labels,
                             .spot = pool.spot});
  }
  return empty;
}

}  // namespace

bool CouldHaveRoom(const Snapshot& snapshot, const Job& job) {
  for (const bool scaled_at_minimum : {false, true}) {
    const Snapshot empty = Emptied(snapshot, scaled_at_minimum);
    Decisions none;
    if (Scaler(empty, none, nullptr).FindsRoomFor(job)) return true;
  }
  return false;
}

void ScalePools(const Snapshot& snapshot, Decisions& decisions, PreemptionOracle* oracle) {
  if (std::any_of(snapshot.pools.begin(), snapshot.pools.end(), IsScaled))
    Scaler(snapshot, decisions, oracle).Run();
}

}  // namespace renzan::cluster
