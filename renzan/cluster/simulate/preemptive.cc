// Baselines that run the jobs that come first in some order, and stop others for them: gang
// schedulers with cheap preemption. Jobs that would lose their work, or may not be stopped, keep
// what they have.

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

// Jobs with lower ranks come first.
class Order {
 public:
  virtual ~Order() = default;
  virtual int64_t RankOf(const Job& job, const PolicyInput& input) const = 0;
  // When the rank of a job that runs with so many workers changes; kNever if it does not.
  virtual TimeMs ChangesAt(const Job& job, int workers, const Snapshot& snapshot) const = 0;
};

class Cycle {
 public:
  Cycle(const PolicyInput& input, const Order& order)
      : input_(input),
        snapshot_(input.snapshot),
        order_(order),
        now_(snapshot_, input.free),
        soon_(snapshot_, CapacityOf(snapshot_)),
        later_(soon_) {}

  PolicyOutput Run() && {
    output_.decisions.stops = StopOnLeavingNodes(snapshot_);
    Rank();
    std::sort(ranked_.begin(), ranked_.end());
    // For each request, the smallest number of workers that did not fit; room only shrinks.
    std::vector<int> too_many(snapshot_.worker_requests.size(), std::numeric_limits<int>::max());
    for (const auto& [priority, rank, id, job] : ranked_) {
      if (job->state == JobState::kRunning)
        KeepOrStop(*job);
      else if (job->max_workers < too_many[job->request] && !StartOrClaim(*job))
        too_many[job->request] = job->max_workers;
    }
    return std::move(output_);
  }

 private:
  static std::vector<Resources> CapacityOf(const Snapshot& snapshot) {
    std::vector<Resources> capacity;
    for (const Node& node : snapshot.nodes)
      capacity.push_back(node.state == NodeState::kReady ? node.capacity : Resources{});
    return capacity;
  }

  void Rank() {
    std::set<JobId> leaving;
    for (const Stop& stop : output_.decisions.stops) leaving.insert(stop.job);
    for (const Job& job : snapshot_.jobs) {
      if (job.state == JobState::kPending && job.eligible_at <= snapshot_.now) Add(job);
      if (job.state != JobState::kRunning || leaving.contains(job.id)) continue;
      Take(soon_, job, job.placement);
      if (!SavesWhenStopped(job) || !job.preemptible)
        Take(later_, job, job.placement);
      else
        Add(job);
      Runs(job, job.placement);
    }
  }

  void Add(const Job& job) {
    ranked_.emplace_back(-job.priority, order_.RankOf(job, input_), job.id, &job);
  }

  void Runs(const Job& job, const Placement& placement) {
    TimeMs& look_again = output_.decisions.look_again;
    look_again = std::min(look_again, order_.ChangesAt(job, NumWorkers(placement), snapshot_));
  }

  const WorkerRequest& RequestOf(const Job& job) const {
    return snapshot_.worker_requests[job.request];
  }

  void Take(Room& room, const Job& job, const Placement& placement) const {
    for (const Placed& placed : placement)
      room.Take(placed.node, RequestOf(job).per_worker * placed.workers);
  }

  // What is free in both.
  Room InBoth(const Room& room, const Room& other) const {
    Room both = room;
    for (size_t node = 0; node < snapshot_.nodes.size(); ++node)
      both.LimitTo(static_cast<int>(node), other);
    return both;
  }

  void KeepOrStop(const Job& job) {
    const bool fits =
        std::all_of(job.placement.begin(), job.placement.end(), [&](const Placed& placed) {
          return (RequestOf(job).per_worker * placed.workers).FitsIn(later_.free(placed.node));
        });
    if (fits)
      Take(later_, job, job.placement);
    else
      output_.decisions.stops.push_back({job.id, StopReason::kTimeShared});
  }

  // Starts the job on what is free; or else claims what will be free once jobs have stopped; or
  // else what jobs that come later in the order hold, which are then stopped.
  bool StartOrClaim(const Job& job) {
    const auto place = [&](Room room) {
      return room.Place(RequestOf(job), job.max_workers, job.max_workers);
    };
    std::optional<Placement> placement = place(InBoth(now_, later_));
    const bool starts = placement.has_value();
    if (!placement) placement = place(InBoth(soon_, later_));
    if (!placement) placement = place(later_);
    if (!placement) return false;
    Take(now_, job, *placement);
    Take(soon_, job, *placement);
    Take(later_, job, *placement);
    if (!starts) return true;
    Runs(job, *placement);
    output_.decisions.starts.push_back({job.id, std::move(*placement)});
    return true;
  }

  const PolicyInput& input_;
  const Snapshot& snapshot_;
  const Order& order_;
  // Free now; once all jobs that were told to stop have stopped; without the jobs that come later
  // in the order.
  Room now_, soon_, later_;
  std::vector<std::tuple<int, int64_t, JobId, const Job*>> ranked_;  // -priority, rank
  PolicyOutput output_;
};

class Preemptive : public SimulatedPolicy {
 public:
  explicit Preemptive(std::unique_ptr<Order> order) : order_(std::move(order)) {}
  PolicyOutput Decide(const PolicyInput& input) override { return Cycle(input, *order_).Run(); }

 private:
  const std::unique_ptr<Order> order_;
};

// Levels of GPU time, as in Tiresias (Gu et al., NSDI 2019).
class LeastAttainedService : public Order {
 public:
  int64_t RankOf(const Job& job, const PolicyInput& input) const override {
    return LevelOf(AttainedWorkerMs(job, input.snapshot.now) * GpusOf(job, input.snapshot));
  }

  TimeMs ChangesAt(const Job& job, int workers, const Snapshot& snapshot) const override {
    const int64_t gpus = GpusOf(job, snapshot);
    const int64_t attained = AttainedWorkerMs(job, snapshot.now) * gpus;
    const int level = LevelOf(attained);
    if (level == kLevels - 1) return kNever;
    const int64_t rate = workers * gpus;
    return snapshot.now + (kThresholds[level] - attained + rate - 1) / rate;
  }

 private:
  static constexpr int64_t kThresholds[] = {kHour, 8 * kHour, 64 * kHour};
  static constexpr int kLevels = std::size(kThresholds) + 1;

  static int64_t GpusOf(const Job& job, const Snapshot& snapshot) {
    return std::max<int64_t>(1, snapshot.worker_requests[job.request].per_worker.gpu());
  }

  static int LevelOf(int64_t attained) {
    return static_cast<int>(
        std::upper_bound(std::begin(kThresholds), std::end(kThresholds), attained) -
        std::begin(kThresholds));
  }
};

// Shortest remaining time first, known exactly. A running job gets an advantage: the time that
// stopping and restarting it would take.
class ShortestRemainingTime : public Order {
 public:
  int64_t RankOf(const Job& job, const PolicyInput& input) const override {
    if (job.state == JobState::kPending) return input.run_time(job.id, job.max_workers);
    return input.end_time(job.id) - input.snapshot.now - job.checkpoint_cost_ms -
           job.restart_cost_ms;
  }
  TimeMs ChangesAt(const Job&, int, const Snapshot&) const override { return kNever; }
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeLeastAttainedService() {
  return std::make_unique<Preemptive>(std::make_unique<LeastAttainedService>());
}

std::unique_ptr<SimulatedPolicy> MakeShortestRemainingTime() {
  return std::make_unique<Preemptive>(std::make_unique<ShortestRemainingTime>());
}

}  // namespace renzan::cluster::simulate
