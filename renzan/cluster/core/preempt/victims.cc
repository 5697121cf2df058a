#include "renzan/cluster/core/preempt/victims.h"

#include <algorithm>
#include <limits>
#include <map>

#include "renzan/cluster/core/place/placement.h"

namespace renzan::cluster {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// One step that makes room on a node: an elastic job loses workers there, or a job is stopped.
struct Step {
  int job;
  int workers;  // that it frees on this node
  bool stops;
  double cost;
};

class VictimSearch {
 public:
  VictimSearch(const ClusterView& view, const Quota& quota, const Occupants& occupants,
               const Job& job, const VictimRules& rules)
      : view_(view),
        snapshot_(view.snapshot()),
        occupants_(occupants),
        job_(job),
        unit_workers_(NeedsOneHost(snapshot_.worker_requests[job.request]) ? job.min_workers : 1),
        each_(snapshot_.worker_requests[job.request].per_worker * unit_workers_),
        rules_(rules),
        before_(quota),
        quota_(quota),
        freed_(view.num_nodes()),
        gang_(view.num_nodes()),
        cost_(view.num_nodes(), kImpossible) {}

  void StopFirst(const std::vector<int>& jobs) {
    for (const int job : jobs) Stop(job);
  }

  // Drops everything chosen so far.
  void Reset() {
    for (const int node : changed_nodes_) {
      freed_[node] = {};
      gang_[node] = 0;
    }
    changed_nodes_.clear();
    victims_.clear();
    quota_ = before_;
    nodes_ = nullptr;
  }

  // Places the gang on `nodes`; false if it would not fit with all possible victims stopped.
  bool Place(const NodeSet& nodes, bool may_stop) {
    may_stop_ = may_stop;
    Consider(nodes);
    for (int placed = 0; placed < job_.min_workers / unit_workers_;) {
      const int node = Cheapest();
      if (node < 0) return false;
      std::vector<Step> steps;
      const double cost = Cost(node, &steps);
      if (cost > cost_[node]) {  // its queue no longer borrows, so other victims are needed
        cost_[node] = cost;
        continue;
      }
      for (const Step& step : steps) Apply(step, node);
      ++gang_[node];
      changed_nodes_.push_back(node);
      ++placed;
      Refresh(node);
    }
    return true;
  }

  double total() const {
    double cost = 0;
    for (const auto& [job, victim] : victims_) cost += rules_.cost(job, before_);
    return cost;
  }

  VictimPlan Finish(const std::vector<int>& needed_for_quota) {
    DropUnneededVictims(needed_for_quota);
    VictimPlan plan;
    for (int node = 0; node < view_.num_nodes(); ++node)
      if (gang_[node] > 0) plan.placement.push_back({node, gang_[node] * unit_workers_});
    for (auto& [job, victim] : victims_) {
      std::sort(victim.leaves.begin(), victim.leaves.end(),
                [](const Placed& a, const Placed& b) { return a.node < b.node; });
      plan.victims.push_back(victim);
    }
    return plan;
  }

 private:
  // Collects candidate nodes, starting at a node that differs from job to job, until there are
  // enough. Examining every node of a large cluster would hardly find cheaper victims.
  void Consider(const NodeSet& nodes) {
    constexpr int kPlenty = 128;
    const int enough = kPlenty + 4 * job_.min_workers;
    candidates_.clear();
    nodes_ = &nodes;
    if (view_.num_nodes() == 0) return;
    const int first = static_cast<int>(job_.id * 7919 % view_.num_nodes());
    const auto look = [&](int from, int to) {
      for (int node = nodes.Next(from); node >= 0 && node < to; node = nodes.Next(node + 1)) {
        if (static_cast<int>(candidates_.size()) == enough) return;
        cost_[node] = Cost(node, nullptr);
        if (cost_[node] != kImpossible) candidates_.push_back(node);
      }
    };
    look(first, view_.num_nodes());
    look(0, first);
    std::sort(candidates_.begin(), candidates_.end());
  }

  struct Slack {
    Resources future, unreserved;
    bool Holds(const Resources& amount) const {
      return amount.FitsIn(future) && amount.FitsIn(unreserved);
    }
  };

  Slack SlackOn(int node) const {
    const Resources gang = each_ * gang_[node];
    return {view_.Free(node, Room::kFuture) + freed_[node].future - gang,
            view_.Unreserved(node) + freed_[node].unreserved - gang};
  }

  int Cheapest() const {
    int best = -1;
    int64_t best_left = 0;
    for (const int node : candidates_) {
      if (cost_[node] == kImpossible) continue;
      const int64_t left = view_.Free(node, Room::kFuture)[view_.packing_kind()];
      if (best < 0 || std::tuple(cost_[node], left) < std::tuple(cost_[best], best_left)) {
        best = node;
        best_left = left;
      }
    }
    return best;
  }

  int Surplus(int job) const {
    const auto at = victims_.find(job);
    const int shrunk = at == victims_.end() ? 0 : NumWorkers(at->second.leaves);
    return NumWorkers(snapshot_.jobs[job].placement) - snapshot_.jobs[job].min_workers - shrunk;
  }

  // The job's workers on the node that the plan does not remove yet.
  int StillOn(int node, const Occupants::Tenant& tenant) const {
    int workers = tenant.workers;
    if (const auto at = victims_.find(tenant.job); at != victims_.end())
      for (const Placed& placed : at->second.leaves)
        if (placed.node == node) workers -= placed.workers;
    return workers;
  }

  // Possible steps on the node: shrinks before stops, cheapest first.
  std::vector<Step> StepsOn(int node) const {
    std::vector<Step> steps;
    for (const Occupants::Tenant& tenant : occupants_.On(node)) {
      const Job& victim = snapshot_.jobs[tenant.job];
      int here = StillOn(node, tenant);
      const auto cost = [&] { return rules_.cost(tenant.job, quota_); };
      if (here == 0 || occupants_.leaving(tenant.job)) continue;
      if (rules_.may_shrink && victim.min_workers < victim.max_workers &&
          rules_.may_shrink(victim, quota_)) {
        const int surplus = std::min(here, Surplus(tenant.job));
        const bool shrunk_already = victims_.contains(tenant.job);
        for (int step = 0; step < surplus; ++step)
          steps.push_back({tenant.job, 1, false, step > 0 || shrunk_already ? 0 : cost()});
        here -= surplus;
      }
      if (may_stop_ && here > 0 && rules_.may_stop(victim, quota_))
        steps.push_back({tenant.job, here, true, cost()});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return std::tuple(a.stops, a.cost, -a.job) < std::tuple(b.stops, b.cost, -b.job);
    });
    return steps;
  }

  // Whether the step is still allowed after the earlier steps on this node that affect its queue or
  // the queue's parent: it may no longer be borrowing.
  bool StillAllowed(const Step& step, const std::vector<Step>& taken) const {
    const Job& victim = snapshot_.jobs[step.job];
    const auto side_of = [&](int job) {
      return SideOf(snapshot_, snapshot_.jobs[job].queue, job_.queue);
    };
    const auto of_its_side = [&](const Step& other) {
      return side_of(other.job) == side_of(step.job);
    };
    if (victim.queue == job_.queue || std::none_of(taken.begin(), taken.end(), of_its_side))
      return true;
    Quota then = quota_;
    for (const Step& other : taken) {
      const Job& gone = snapshot_.jobs[other.job];
      then.Remove(gone, other.stops ? NumWorkers(gone.placement) : other.workers);
    }
    return (step.stops ? rules_.may_stop : rules_.may_shrink)(victim, then);
  }

  // The cost of room for one more unit on the node, and the steps that make it.
  double Cost(int node, std::vector<Step>* chosen) const {
    Slack slack = SlackOn(node);
    if (slack.Holds(each_)) return 0;
    std::vector<Step> taken;
    for (const Step& step : StepsOn(node)) {
      if (slack.Holds(each_)) break;
      if (!StillAllowed(step, taken)) continue;
      Change(slack, step.job, step.workers);
      taken.push_back(step);
    }
    if (!slack.Holds(each_)) return kImpossible;
    // Undo steps that turn out not to be needed.
    for (size_t at = 0; at < taken.size();) {
      const bool part_of_a_stop =
          !taken[at].stops && std::any_of(taken.begin(), taken.end(), [&](const Step& other) {
            return other.stops && other.job == taken[at].job;
          });
      Slack without = slack;
      Change(without, taken[at].job, -taken[at].workers);
      if (part_of_a_stop || !without.Holds(each_)) {
        ++at;
        continue;
      }
      slack = without;
      taken.erase(taken.begin() + at);
    }
    double cost = 0;
    for (const Step& step : taken) cost += step.cost;
    if (chosen != nullptr) *chosen = std::move(taken);
    return cost;
  }

  // `workers` of the job leave the node; negative: they return.
  void Change(Slack& slack, int job, int workers) const {
    const Job& victim = snapshot_.jobs[job];
    const Resources amount = snapshot_.worker_requests[victim.request].per_worker * workers;
    slack.future += amount;
    if (!victim.backfilled) slack.unreserved += amount;
  }

  void Free(int job, int node, int workers) {
    Change(freed_[node], job, workers);
    changed_nodes_.push_back(node);
    if (workers > 0)
      quota_.Remove(snapshot_.jobs[job], workers);
    else
      quota_.Add(snapshot_.jobs[job], -workers);
  }

  void Shrink(int job, int node, int workers) {
    Victim& victim = victims_.try_emplace(job, Victim{job, {}, false}).first->second;
    Free(job, node, workers);
    for (Placed& placed : victim.leaves)
      if (placed.node == node) {
        placed.workers += workers;
        return;
      }
    victim.leaves.push_back({node, workers});
  }

  void Stop(int job) {
    Victim& victim = victims_.try_emplace(job, Victim{job, {}, false}).first->second;
    for (const Placed& placed : victim.leaves) Free(job, placed.node, -placed.workers);
    victim.leaves = snapshot_.jobs[job].placement;
    victim.stopped = true;
    for (const Placed& placed : victim.leaves) Free(job, placed.node, placed.workers);
    // The victim's other workers make room on other nodes.
    for (const Placed& placed : victim.leaves) Refresh(placed.node);
  }

  void Refresh(int node) {
    if (nodes_ == nullptr || !nodes_->Has(node)) return;
    cost_[node] = Cost(node, nullptr);
    const auto at = std::lower_bound(candidates_.begin(), candidates_.end(), node);
    if (cost_[node] != kImpossible && (at == candidates_.end() || *at != node))
      candidates_.insert(at, node);
  }

  void Apply(const Step& step, int node) {
    const auto at = victims_.find(step.job);
    if (at != victims_.end() && at->second.stopped) return;
    if (step.stops)
      Stop(step.job);
    else
      Shrink(step.job, node, step.workers);
  }

  bool FitsWithout(const Victim& victim) const {
    return std::all_of(victim.leaves.begin(), victim.leaves.end(), [&](const Placed& placed) {
      if (gang_[placed.node] == 0) return true;
      Slack slack = SlackOn(placed.node);
      Change(slack, victim.job, -placed.workers);
      return slack.Holds({});
    });
  }

  // Most expensive first, stops before shrinks.
  void DropUnneededVictims(const std::vector<int>& needed_for_quota) {
    std::vector<std::tuple<bool, double, int>> order;
    for (const auto& [job, victim] : victims_)
      if (std::find(needed_for_quota.begin(), needed_for_quota.end(), job) ==
          needed_for_quota.end())
        order.emplace_back(!victim.stopped, -rules_.cost(job, before_), job);
    std::sort(order.begin(), order.end());
    for (const auto& [shrunk, cost, job] : order) {
      const Victim& victim = victims_.at(job);
      if (!FitsWithout(victim)) continue;
      for (const Placed& placed : victim.leaves) Free(job, placed.node, -placed.workers);
      victims_.erase(job);
    }
  }

  const ClusterView& view_;
  const Snapshot& snapshot_;
  const Occupants& occupants_;
  const Job& job_;
  // The gang is placed unit by unit: a worker, or the whole gang if it must run on one host.
  const int unit_workers_;
  const Resources each_;  // needs of a unit
  const VictimRules& rules_;
  const Quota& before_;
  Quota quota_;                     // without the victims chosen so far
  std::vector<int> candidates_;     // sorted; nodes whose cost is known
  std::vector<int> changed_nodes_;  // nodes whose entries below are not zero
  const NodeSet* nodes_ = nullptr;  // where the gang may run
  bool may_stop_ = false;
  std::vector<Slack> freed_;
  std::vector<int> gang_;  // units of the gang, by node
  std::vector<double> cost_;
  std::map<int, Victim> victims_;
};

NodeSet AllNodes(const ClusterView& view, const Job& job) {
  NodeSet all(view.num_nodes());
  for (const NodeSet& tier : view.Tiers(job.request, job.checkpoints))
    for (int node = tier.Next(0); node >= 0; node = tier.Next(node + 1)) all.Add(node);
  return all;
}

void AddNodesWithRoom(const ClusterView& view, const Job& job, NodeSet& nodes) {
  const LevelIndex& index = view.index(Room::kFuture);
  const int64_t each = view.snapshot().worker_requests[job.request].per_worker[view.packing_kind()];
  for (int level = index.LevelOf(each); level < LevelIndex::kLevels; ++level)
    nodes |= index.at(level);
}

// The node sets within one of which the gang must run.
std::vector<NodeSet> Scopes(const ClusterView& view, const Job& job) {
  const WorkerRequest& request = view.snapshot().worker_requests[job.request];
  const NodeSet all = AllNodes(view, job);
  if (request.topology_level.empty() || !request.topology_required || NeedsOneHost(request))
    return {all};
  std::vector<NodeSet> scopes;
  for (const NodeSet& domain : view.Domains(request.topology_level)) scopes.push_back(domain & all);
  return scopes;
}

}  // namespace

std::optional<VictimPlan> FindVictims(const ClusterView& view, const Quota& quota,
                                      const Occupants& occupants, const Job& job,
                                      const VictimRules& rules, const std::vector<int>& stop_first,
                                      const VictimNodes* where) {
  const std::vector<NodeSet> scopes = Scopes(view, job);
  VictimSearch search(view, quota, occupants, job, rules);
  for (const bool may_stop : {false, true}) {
    std::optional<VictimPlan> best;
    double best_cost = kImpossible;
    std::optional<NodeSet> worth;
    if (!may_stop && !rules.may_shrink)
      worth.emplace(view.num_nodes());
    else if (where != nullptr)
      worth = may_stop ? where->all : where->shrinkable;
    if (worth) AddNodesWithRoom(view, job, *worth);
    for (const NodeSet& scope : scopes) {
      search.Reset();
      search.StopFirst(stop_first);
      const NodeSet nodes = worth ? scope & *worth : scope;
      if (!search.Place(nodes, may_stop)) continue;
      VictimPlan plan = search.Finish(stop_first);
      if (search.total() >= best_cost) continue;
      best_cost = search.total();
      best = std::move(plan);
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace renzan::cluster
