#include "renzan/cluster/core/explain/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

class Trials {
 public:
  Trials(const Snapshot& snapshot, const Wait& wait, const ScheduleOptions& options,
         const SubmissionRules& rules, CycleBudget& budget)
      : snapshot_(snapshot),
        job_(*snapshot.Find(wait.job)),
        request_(snapshot.worker_requests[job_.request]),
        is_bought_for_(wait.reason == WaitReason::kNodesBooting),
        or_room_(wait.reason == WaitReason::kPipelined ? Also::kNothing : Also::kRoomIsMade),
        options_(options),
        rules_(rules),
        budget_(budget) {}

  std::vector<std::string> Run() && {
    FewerWorkers();
    SmallerWorkers();
    FewerConstraints();
    Preemptible();
    HigherLimits();
    HigherPriority();
    OthersEnd();
    NodesRestored();
    MoreNodes();
    if (!is_bought_for_) MoreToBuy();
    if (suggestions_.size() > 5) suggestions_.resize(5);
    return std::move(suggestions_);
  }

 private:
  using Change = std::function<void(Snapshot&, Job&)>;

  // What counts as success besides a start.
  enum class Also { kNothing, kRoomIsMade, kPurchase };

  // The decisions of a cycle after `change`; nothing if the budget is spent.
  std::optional<Decisions> Try(const Change& change) {
    if (!budget_.Spend()) return std::nullopt;
    Snapshot changed = snapshot_;
    change(changed, *changed.Find(job_.id));
    return Schedule(changed, options_);
  }

  bool Starts(const Change& change, Also also = Also::kNothing) {
    const std::optional<Decisions> decisions = Try(change);
    return decisions && Starts(*decisions, also);
  }

  bool Starts(const Decisions& decisions, Also also) const {
    const auto is_it = [&](const auto& decision) { return decision.job == job_.id; };
    if (std::any_of(decisions.starts.begin(), decisions.starts.end(), is_it)) return true;
    const auto is_for_it = [&](const auto& each) { return each.on_behalf_of == job_.id; };
    if (also == Also::kRoomIsMade)
      return std::any_of(decisions.stops.begin(), decisions.stops.end(), is_for_it) ||
             std::any_of(decisions.resizes.begin(), decisions.resizes.end(), is_for_it);
    const auto wait = std::find_if(decisions.waits.begin(), decisions.waits.end(), is_it);
    return also == Also::kPurchase && wait != decisions.waits.end() &&
           wait->reason == WaitReason::kNodesBooting;
  }

  // The value nearest to `now`, other than `now`, in the direction of `extreme` with which the job
  // starts. By bisection: less demand or more supply never hurts the job itself.
  std::optional<int64_t> Nearest(int64_t now, int64_t extreme,
                                 const std::function<Change(int64_t)>& with,
                                 Also also = Also::kNothing) {
    if (now == extreme || !Starts(with(extreme), also)) return std::nullopt;
    int64_t fails = now, starts = extreme;
    while (std::abs(starts - fails) > 1) {
      const int64_t middle = fails + (starts - fails) / 2;
      const bool enough = Starts(with(middle), also);
      if (budget_.exhausted()) return std::nullopt;  // nearer values have not been tried
      (enough ? starts : fails) = middle;
    }
    return starts;
  }

  static void SetRequest(Snapshot& changed, Job& job, const WorkerRequest& request) {
    job.request = changed.InternRequest(request);
  }

  void FewerWorkers() {
    const auto with = [](int64_t workers) {
      return [=](Snapshot&, Job& job) {
        job.min_workers = static_cast<int>(workers);
        job.max_workers = std::max(job.max_workers, job.min_workers);
      };
    };
    if (const auto workers = Nearest(job_.min_workers, 1, with, or_room_))
      suggestions_.push_back(
          fmt::format("with {} instead of {}", Counted(*workers, "worker"), job_.min_workers));
  }

  Change WithAmount(int kind, int64_t amount) const {
    return [this, kind, amount](Snapshot& changed, Job& job) {
      WorkerRequest request = request_;
      request.per_worker[kind] = amount;
      if (rules_.round_up)
        request.per_worker = rules_.round_up(request.per_worker).value_or(request_.per_worker);
      SetRequest(changed, job, request);
    };
  }

  void SmallerWorkers() {
    for (size_t kind = 0; kind < snapshot_.resource_names.size(); ++kind) {
      const int64_t now = request_.per_worker[static_cast<int>(kind)];
      // In whole units: cores and GiB.
      const int64_t unit = kind == kCpu ? 1000 : kind == kMemory ? 1024 : 1;
      const int64_t units = (now + unit - 1) / unit;
      if (units <= 1) continue;
      const auto with = [&](int64_t amount) {
        return WithAmount(static_cast<int>(kind), amount * unit);
      };
      const auto less = Nearest(units, 1, with, or_room_);
      if (!less) continue;
      const std::string amount =
          kind == kGpu ? Counted(*less, "GPU")
          : kind == kCpu
              ? Counted(*less, "core")
              : fmt::format("{} {}", *less,
                            kind == kMemory ? "GiB of memory" : snapshot_.resource_names[kind]);
      suggestions_.push_back(fmt::format("with {} per worker instead of {}", amount, units));
    }
  }

  void FewerConstraints() {
    for (const auto& [key, value] : request_.required) {
      WorkerRequest request = request_;
      request.required.erase(key);
      if (Starts([&](Snapshot& changed, Job& job) { SetRequest(changed, job, request); }, or_room_))
        suggestions_.push_back(fmt::format("without the required label {}={}", key, value));
    }
    if (!request_.topology_required) return;
    WorkerRequest request = request_;
    request.topology_required = false;
    if (Starts([&](Snapshot& changed, Job& job) { SetRequest(changed, job, request); }, or_room_))
      suggestions_.push_back(
          fmt::format("if one {} were preferred instead of required", request_.topology_level));
  }

  void Preemptible() {
    if (IsFixed(job_) && Starts([](Snapshot&, Job& job) { job.preemptible = true; }, or_room_))
      suggestions_.push_back("if it could be preempted (preemptible: true)");
  }

  void HigherLimits() {
    const int64_t most = request_.per_worker.gpu() * job_.min_workers;
    const int64_t limit = snapshot_.queues[job_.queue].limit.gpu();
    if (most > 0 && limit != kUnlimited) {
      const auto with = [&](int64_t gpus) {
        return [=](Snapshot& changed, Job& job) { changed.queues[job.queue].limit[kGpu] += gpus; };
      };
      const auto more = Nearest(0, most, with, or_room_);
      if (more)
        suggestions_.push_back(fmt::format("if the limit of queue {} were {} instead of {}",
                                           snapshot_.queues[job_.queue].name,
                                           Counted(limit + *more, "GPU"), limit));
    }
    const int64_t cap = snapshot_.users[job_.user].CapAt(snapshot_.now);
    if (most > 0 && cap != kUnlimited) {
      const auto with = [&](int64_t gpus) {
        return [=](Snapshot& changed, Job& job) { changed.users[job.user].max_gpus = cap + gpus; };
      };
      const auto more = Nearest(0, most, with, or_room_);
      if (more)
        suggestions_.push_back(fmt::format("if user {} were allowed {} instead of {}",
                                           snapshot_.users[job_.user].name,
                                           Counted(cap + *more, "GPU"), cap));
    }
  }

  void HigherPriority() {
    std::vector<int> higher;
    for (const Job& job : snapshot_.jobs)
      if (job.priority >= job_.priority && job.priority < rules_.max_priority)
        higher.push_back(job.priority + 1);
    std::sort(higher.begin(), higher.end());
    higher.erase(std::unique(higher.begin(), higher.end()), higher.end());
    for (const int priority : higher)
      if (Starts([=](Snapshot&, Job& job) { job.priority = priority; }, Also::kRoomIsMade)) {
        suggestions_.push_back(
            fmt::format("with priority {} instead of {}, before or in place of others", priority,
                        job_.priority));
        return;
      }
  }

  // Finds the running job with the fewest GPUs whose end would suffice.
  void OthersEnd() {
    std::vector<const Job*> running;
    for (const Job& job : snapshot_.jobs)
      if (job.state == JobState::kRunning) running.push_back(&job);
    const auto size = [&](const Job* job) {
      return snapshot_.worker_requests[job->request].per_worker * NumWorkers(job->placement);
    };
    std::stable_sort(running.begin(), running.end(), [&](const Job* a, const Job* b) {
      return std::tuple(size(a).gpu(), size(a)[kCpu]) < std::tuple(size(b).gpu(), size(b)[kCpu]);
    });
    // Tries the largest jobs: the end of one of them is more likely to suffice.
    constexpr size_t kTries = 30;
    if (running.size() > kTries) running.erase(running.begin(), running.end() - kTries);
    for (const Job* job : running) {
      const JobId id = job->id;
      if (!Starts([=](Snapshot& changed, Job&) {
            std::erase_if(changed.jobs, [=](const Job& other) { return other.id == id; });
          }))
        continue;
      const int64_t gpus = size(job).gpu();
      suggestions_.push_back(
          fmt::format("if job {} of queue {} ended{}", id, snapshot_.queues[job->queue].name,
                      gpus > 0 ? fmt::format(" ({})", Counted(gpus, "GPU")) : ""));
      return;
    }
  }

  // Its health check closes it again at once, until it passes.
  static bool IsClosedByItsCheck(const Node& node) {
    return !node.reason.empty() && node.until == kNever;
  }

  // One node, or else the first few.
  void NodesRestored() {
    constexpr size_t kTries = 8;
    std::vector<size_t> nodes;
    for (size_t node = 0; node < snapshot_.nodes.size() && nodes.size() < kTries; ++node) {
      const Node& facts = snapshot_.nodes[node];
      const bool can_return =
          IsMissed(snapshot_, facts) || (MayBeRestored(facts) && !IsClosedByItsCheck(facts));
      if (can_return && Matches(facts, request_)) nodes.push_back(node);
    }
    const auto restored = [&](size_t from, size_t count) {
      return [&nodes, from, count](Snapshot& changed, Job&) {
        for (size_t at = from; at < from + count; ++at) {
          changed.nodes[nodes[at]].state = NodeState::kReady;
          changed.nodes[nodes[at]].until = kNever;
        }
      };
    };
    for (size_t at = 0; at < nodes.size(); ++at)
      if (Starts(restored(at, 1))) return SuggestToRestore({snapshot_.nodes[nodes[at]].name});
    if (nodes.size() < 2) return;
    const auto count = Nearest(1, std::ssize(nodes), [&](int64_t first) {
      return restored(0, static_cast<size_t>(first));
    });
    if (!count) return;
    std::vector<std::string> names;
    for (int64_t at = 0; at < *count; ++at) names.push_back(snapshot_.nodes[nodes[at]].name);
    SuggestToRestore(names);
  }

  void SuggestToRestore(const std::vector<std::string>& nodes) {
    const bool one = nodes.size() == 1;
    const std::string how = rules_.operates
                                ? "renzan nodes restore " + (one ? nodes[0] : std::string("NAME"))
                                : fmt::format("an operator can restore {}", one ? "it" : "them");
    suggestions_.push_back(fmt::format("if {} {} were restored ({})", one ? "node" : "nodes",
                                       fmt::join(nodes, ", "), how));
  }

  // More machines in a fixed-size pool.
  void MoreNodes() {
    for (size_t pool = 0; pool < snapshot_.pools.size(); ++pool) {
      const Pool& facts = snapshot_.pools[pool];
      if (IsScaled(facts)) continue;
      const auto more = Nearest(0, job_.min_workers, [&](int64_t nodes) {
        return [&facts, pool, nodes](Snapshot& changed, Job&) {
          for (int64_t node = 0; node < nodes; ++node)
            changed.nodes.push_back({.name = fmt::format("{}-more-{}", facts.name, node),
                                     .pool = static_cast<int>(pool),
                                     .capacity = facts.capacity,
                                     .labels = facts.labels,
                                     .spot = facts.spot});
        };
      });
      if (more)
        suggestions_.push_back(
            fmt::format("with {} of pool {}", Counted(*more, "more node"), facts.name));
    }
  }

  // Looks for nodes that would be bought for it if the configuration allowed it.
  void MoreToBuy() {
    for (size_t pool = 0; pool < snapshot_.pools.size(); ++pool) {
      const Pool& facts = snapshot_.pools[pool];
      if (!IsScaled(facts)) continue;
      const auto with = [pool](int64_t nodes) {
        return [=](Snapshot& changed, Job&) {
          changed.pools[pool].max_nodes = static_cast<int>(nodes);
        };
      };
      if (const auto most =
              Nearest(facts.max_nodes, facts.max_nodes + job_.min_workers, with, Also::kPurchase))
        suggestions_.push_back(fmt::format("if pool {} could have {} instead of {}", facts.name,
                                           Counted(*most, "node"), facts.max_nodes));
    }
    if (!std::isinf(snapshot_.budget_per_hour)) HigherBudget();
  }

  void HigherBudget() {
    const auto with = [](double budget) {
      return [=](Snapshot& changed, Job&) { changed.budget_per_hour = budget; };
    };
    const std::optional<Decisions> unlimited = Try(with(std::numeric_limits<double>::infinity()));
    if (!unlimited || !Starts(*unlimited, Also::kPurchase)) return;
    double price = 0;
    for (const Node& node : snapshot_.nodes)
      if (node.pool >= 0 && node.state != NodeState::kGone)
        price += snapshot_.pools[node.pool].price_per_hour;
    for (const ScaleOut& bought : unlimited->scale_out)
      price += snapshot_.pools[bought.pool].price_per_hour * bought.nodes;
    if (Starts(with(price), Also::kPurchase))
      suggestions_.push_back(fmt::format("if the budget were {:.6g} an hour instead of {:.6g}",
                                         price, snapshot_.budget_per_hour));
  }

  const Snapshot& snapshot_;
  const Job& job_;
  const WorkerRequest& request_;
  const bool is_bought_for_;  // nodes are already being bought for it
  const Also or_room_;        // others make room; not news if they already do
  const ScheduleOptions& options_;
  const SubmissionRules& rules_;
  CycleBudget& budget_;
  std::vector<std::string> suggestions_;
};

}  // namespace

std::vector<std::string> ChangesThatStart(const Snapshot& snapshot, const Wait& wait,
                                          const ScheduleOptions& options,
                                          const SubmissionRules& rules, CycleBudget& budget) {
  return Trials(snapshot, wait, options, rules, budget).Run();
}

}  // namespace renzan::cluster
