#include "renzan/cluster/core/resize/pools.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/rooms.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

// So many nodes of each pool, and what they cost an hour.
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
  Scaler(const Snapshot& snapshot, Decisions& decisions)
      : snapshot_(snapshot),
        decisions_(decisions),
        rooms_(snapshot, decisions),
        quota_(ClusterView(snapshot)),
        living_(snapshot.pools.size()),
        bought_(snapshot.pools.size()) {
    for (const Node& node : snapshot.nodes) {
      if (node.pool < 0 || node.state == NodeState::kGone) continue;
      // One that leaves is paid for until it has left, and may be replaced before.
      price_ += snapshot.pools[node.pool].price_per_hour;
      living_[node.pool] += node.state != NodeState::kDraining;
    }
    CountUsage();
  }

  void Run() {
    for (size_t pool = 0; pool < living_.size(); ++pool) KeepMinimum(static_cast<int>(pool));
    for (Wait& wait : decisions_.waits) Consider(wait);
    for (size_t pool = 0; pool < bought_.size(); ++pool)
      if (bought_[pool] > 0)
        decisions_.scale_out.push_back({static_cast<int>(pool), bought_[pool]});
    GiveBack();
  }

  // Is there room for the job, or could it be bought?
  bool FindsRoomFor(const Job& job) {
    for (size_t pool = 0; pool < living_.size(); ++pool) KeepMinimum(static_cast<int>(pool));
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    return rooms_.Place(request, job.min_workers) != Rooms::Fit::kNowhere || Cheapest(job);
  }

 private:
  // What queues and users have after the cycle, so that nothing is bought that quota forbids to
  // use.
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

  // How many nodes of the pool can be had beside those of `purchase`, by its size and the budget.
  int Buyable(int pool, const Purchase& purchase) const {
    const Pool& request = snapshot_.pools[pool];
    if (!IsScaled(request)) return 0;
    const int nodes = std::max(0, request.max_nodes - living_[pool] - bought_[pool]);
    if (request.price_per_hour <= 0) return nodes;
    // A sum of prices that is meant to be the budget may miss it by a rounding error.
    const double affordable =
        (snapshot_.budget_per_hour - price_ - purchase.price) / request.price_per_hour + 1e-9;
    return affordable >= nodes ? nodes : std::max(0, static_cast<int>(affordable));
  }

  void Buy(int pool, int nodes) {
    bought_[pool] += nodes;
    price_ += snapshot_.pools[pool].price_per_hour * nodes;
    for (int node = 0; node < nodes; ++node) rooms_.Buy(pool);
  }

  void KeepMinimum(int pool) {
    const int missing = snapshot_.pools[pool].min_nodes - living_[pool];
    const int nodes = std::min(missing, Buyable(pool, {}));
    if (nodes > 0) Buy(pool, nodes);
  }

  // In the order of the line everyone takes what will be free, so that it is not counted twice.
  void Consider(Wait& wait) {
    const bool has_place =
        wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting;
    const bool wants_room = wait.reason == WaitReason::kResources ||
                            wait.reason == WaitReason::kFragmented ||
                            wait.reason == WaitReason::kReserved;
    if (!has_place && !wants_room) return;
    const Job& job = *snapshot_.Find(wait.job);
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    const std::pair key(job.request, job.checkpoints);
    if (wants_room &&
        (hopeless_.Known(key, job.min_workers) || quota_.Forbids(job, job.min_workers)))
      return;
    Rooms::Fit fit = rooms_.Place(request, job.min_workers);
    if (fit == Rooms::Fit::kNowhere && wants_room) {
      if (const std::optional<Purchase> purchase = Cheapest(job)) {
        for (const auto& [pool, nodes] : purchase->nodes) Buy(pool, nodes);
        hopeless_.Clear();
        // Nodes whose rack is known only when they have come are not placed on yet.
        rooms_.Place(request, job.min_workers);
        fit = Rooms::Fit::kOnBought;
      } else {
        hopeless_.Add(key, job.min_workers);
      }
    }
    if (fit == Rooms::Fit::kNowhere) return;
    quota_.Add(job, job.min_workers);
    if (wants_room && fit == Rooms::Fit::kOnBought) wait = {job.id, WaitReason::kNodesBooting};
  }

  // The cheapest nodes with which the job fits; none if no nodes do that can be had.
  std::optional<Purchase> Cheapest(const Job& job) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    if (!request.topology_required) return CheapestIn(job, "", job.min_workers);
    if (request.topology_level == kHostLevel) return CheapestHost(job);
    std::optional<Purchase> best;
    std::vector<std::string> domains = rooms_.Domains(request.topology_level);
    if (domains.empty()) domains = {""};  // nobody knows any rack yet: all that come may be one
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

  // Pools that the job may be given nodes of, in a domain ("": anywhere). A pool without a label of
  // the level may have nodes in any domain.
  std::vector<int> PoolsFor(const Job& job, const std::string& domain) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    std::vector<int> pools;
    for (size_t index = 0; index < snapshot_.pools.size(); ++index) {
      const Pool& pool = snapshot_.pools[index];
      // What is not saved would be lost again and again on nodes that vanish.
      if (pool.spot && !job.checkpoints) continue;
      const std::string its = DomainOf(snapshot_, pool.labels, request.topology_level);
      if (!domain.empty() && !its.empty() && its != domain) continue;
      if (HasAll(pool.labels, request.required) &&
          WorkersThatFit(pool.capacity, request.per_worker, 1) > 0)
        pools.push_back(static_cast<int>(index));
    }
    return pools;
  }

  // Either all from one pool or from several, those first that cost least for a worker.
  std::optional<Purchase> CheapestIn(const Job& job, const std::string& domain, int workers) const {
    const WorkerRequest& request = snapshot_.worker_requests[job.request];
    workers -= rooms_.Count(request, workers, domain);
    std::vector<int> pools = PoolsFor(job, domain);
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

  // As many nodes of each pool in turn as are needed and can be had.
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

  void GiveBack() {
    std::vector<int> idle;
    for (size_t index = 0; index < snapshot_.nodes.size(); ++index) {
      const Node& node = snapshot_.nodes[index];
      if (node.pool < 0 || node.state != NodeState::kReady || !IsScaled(snapshot_.pools[node.pool]))
        continue;
      if (!rooms_.IsNeeded(static_cast<int>(index)) && bought_[node.pool] == 0)
        idle.push_back(static_cast<int>(index));
    }
    // Dearest first, then those that have been idle for longest.
    std::stable_sort(idle.begin(), idle.end(), [&](int a, int b) {
      const Node &left = snapshot_.nodes[a], &right = snapshot_.nodes[b];
      return std::tuple(-snapshot_.pools[left.pool].price_per_hour, left.idle_since) <
             std::tuple(-snapshot_.pools[right.pool].price_per_hour, right.idle_since);
    });
    for (const int index : idle) {
      const Node& node = snapshot_.nodes[index];
      const Pool& pool = snapshot_.pools[node.pool];
      if (living_[node.pool] <= pool.min_nodes) continue;
      const TimeMs due = node.idle_since + pool.idle_ms;
      if (due > snapshot_.now) {
        decisions_.look_again = std::min(decisions_.look_again, due);
      } else {
        decisions_.scale_in.push_back({index});
        --living_[node.pool];
      }
    }
  }

  const Snapshot& snapshot_;
  Decisions& decisions_;
  Rooms rooms_;
  Quota quota_;
  double price_ = 0;                         // of all nodes that are paid for, by the hour
  std::vector<int> living_, bought_;         // nodes, by pool; those that leave do not count
  Failures<std::pair<int, bool>> hopeless_;  // by request, and whether the job checkpoints
};

// The cluster without jobs, with every node ready that can be without being bought.
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
    const bool stays = node.state == NodeState::kReady || node.state == NodeState::kBooting;
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
    if (Scaler(empty, none).FindsRoomFor(job)) return true;
  }
  return false;
}

void ScalePools(const Snapshot& snapshot, Decisions& decisions) {
  if (std::any_of(snapshot.pools.begin(), snapshot.pools.end(), IsScaled))
    Scaler(snapshot, decisions).Run();
}

}  // namespace renzan::cluster
