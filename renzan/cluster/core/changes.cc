#include "renzan/cluster/core/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace renzan::cluster {
namespace {

const char* Plural(int64_t count) { return count == 1 ? "" : "s"; }

class Trials {
 public:
  Trials(const Snapshot& snapshot, JobId job, const ScheduleOptions& options, int max_trials)
      : snapshot_(snapshot),
        job_(*snapshot.Find(job)),
        shape_(snapshot.shapes[job_.shape]),
        options_(options),
        left_(max_trials) {}

  std::vector<std::string> Run() && {
    FewerWorkers();
    SmallerWorkers();
    FewerConstraints();
    HigherLimits();
    HigherPriority();
    OthersEnd();
    MoreNodes();
    if (said_.size() > 5) said_.resize(5);
    return std::move(said_);
  }

 private:
  using Change = std::function<void(Snapshot&, Job&)>;

  // The job starts, or others are told to make room for it, once `change` has been made.
  bool Starts(const Change& change, bool by_preemption = false) {
    if (left_ <= 0) return false;
    --left_;
    Snapshot world = snapshot_;
    change(world, *world.Find(job_.id));
    const Decisions decisions = Schedule(world, options_);
    const auto is_it = [&](const auto& decision) { return decision.job == job_.id; };
    if (std::any_of(decisions.starts.begin(), decisions.starts.end(), is_it)) return true;
    return by_preemption &&
           std::any_of(decisions.stops.begin(), decisions.stops.end(),
                       [&](const Stop& stop) { return stop.on_behalf_of == job_.id; });
  }

  // The value nearest to `now` (not it) with which the job starts, on the way to `extreme`; by
  // bisection, since less of a demand, or more of a supply, never hurts the job itself.
  std::optional<int64_t> Nearest(int64_t now, int64_t extreme,
                                 const std::function<Change(int64_t)>& with) {
    if (now == extreme || !Starts(with(extreme))) return std::nullopt;
    int64_t fails = now, starts = extreme;
    while (std::abs(starts - fails) > 1) {
      const int64_t middle = fails + (starts - fails) / 2;
      (Starts(with(middle)) ? starts : fails) = middle;
    }
    return starts;
  }

  static void SetShape(Snapshot& world, Job& job, const Shape& shape) {
    job.shape = world.InternShape(shape);
  }

  void FewerWorkers() {
    const auto with = [](int64_t workers) {
      return [=](Snapshot&, Job& job) {
        job.min_workers = static_cast<int>(workers);
        job.max_workers = std::max(job.max_workers, job.min_workers);
      };
    };
    if (const auto workers = Nearest(job_.min_workers, 1, with))
      said_.push_back(fmt::format("with {} worker{} instead of {}", *workers, Plural(*workers),
                                  job_.min_workers));
  }

  Change WithAmount(int kind, int64_t amount) const {
    return [this, kind, amount](Snapshot& world, Job& job) {
      Shape shape = shape_;
      shape.per_worker[kind] = amount;
      SetShape(world, job, shape);
    };
  }

  void SmallerWorkers() {
    for (size_t kind = 0; kind < snapshot_.resource_names.size(); ++kind) {
      const int64_t now = shape_.per_worker[static_cast<int>(kind)];
      // By whole units: cores and GiB.
      const int64_t unit = kind == kCpu ? 1000 : kind == kMemory ? 1024 : 1;
      const int64_t units = (now + unit - 1) / unit;
      if (units <= 1) continue;
      const auto less = Nearest(units, 1, [&](int64_t amount) {
        return WithAmount(static_cast<int>(kind), amount * unit);
      });
      if (!less) continue;
      const std::string name = kind == kGpu      ? fmt::format("GPU{}", Plural(*less))
                               : kind == kCpu    ? fmt::format("core{}", Plural(*less))
                               : kind == kMemory ? "GiB of memory"
                                                 : snapshot_.resource_names[kind];
      said_.push_back(fmt::format("with {} {} a worker instead of {}", *less, name, units));
    }
  }

  void FewerConstraints() {
    for (const auto& [key, value] : shape_.required) {
      Shape shape = shape_;
      shape.required.erase(key);
      if (Starts([&](Snapshot& world, Job& job) { SetShape(world, job, shape); }))
        said_.push_back(fmt::format("without the required label {}={}", key, value));
    }
    if (!shape_.topology_required) return;
    Shape shape = shape_;
    shape.topology_required = false;
    if (Starts([&](Snapshot& world, Job& job) { SetShape(world, job, shape); }))
      said_.push_back(
          fmt::format("if one {} were preferred and not required", shape_.topology_level));
  }

  void HigherLimits() {
    const int64_t most = shape_.per_worker.gpu() * job_.min_workers;
    const int64_t ceiling = snapshot_.queues[job_.queue].ceiling.gpu();
    if (most > 0 && ceiling != kUnlimited) {
      const auto more = Nearest(0, most, [&](int64_t gpus) {
        return [=](Snapshot& world, Job& job) { world.queues[job.queue].ceiling[kGpu] += gpus; };
      });
      if (more)
        said_.push_back(fmt::format("if the ceiling of queue {} were {} GPUs instead of {}",
                                    snapshot_.queues[job_.queue].name, ceiling + *more, ceiling));
    }
    const int64_t cap = snapshot_.users[job_.user].CapAt(snapshot_.now);
    if (most > 0 && cap != kUnlimited) {
      const auto more = Nearest(0, most, [&](int64_t gpus) {
        return [=](Snapshot& world, Job& job) { world.users[job.user].max_gpus = cap + gpus; };
      });
      if (more)
        said_.push_back(fmt::format("if user {} were allowed {} GPUs instead of {}",
                                    snapshot_.users[job_.user].name, cap + *more, cap));
    }
  }

  void HigherPriority() {
    std::vector<int> higher;
    for (const Job& job : snapshot_.jobs)
      if (job.priority >= job_.priority) higher.push_back(job.priority + 1);
    std::sort(higher.begin(), higher.end());
    higher.erase(std::unique(higher.begin(), higher.end()), higher.end());
    for (const int priority : higher)
      if (Starts([=](Snapshot&, Job& job) { job.priority = priority; }, /*by_preemption=*/true)) {
        said_.push_back(fmt::format("with priority {} instead of {}, before or in place of others",
                                    priority, job_.priority));
        return;
      }
  }

  // The running job with the fewest GPUs whose end would do.
  void OthersEnd() {
    std::vector<const Job*> running;
    for (const Job& job : snapshot_.jobs)
      if (job.state == JobState::kRunning) running.push_back(&job);
    const auto size = [&](const Job* job) {
      return snapshot_.shapes[job->shape].per_worker * NumWorkers(job->placement);
    };
    std::stable_sort(running.begin(), running.end(), [&](const Job* a, const Job* b) {
      return std::tuple(size(a).gpu(), size(a)[kCpu]) < std::tuple(size(b).gpu(), size(b)[kCpu]);
    });
    // Any one of many small jobs may stand in the way: the largest are tried last but surely.
    constexpr size_t kTries = 30;
    if (running.size() > kTries) running.erase(running.begin(), running.end() - kTries);
    for (const Job* job : running) {
      const JobId id = job->id;
      if (!Starts([=](Snapshot& world, Job&) {
            std::erase_if(world.jobs, [=](const Job& other) { return other.id == id; });
          }))
        continue;
      const int64_t gpus = size(job).gpu();
      said_.push_back(fmt::format("if job {} of queue {} ended{}", id,
                                  snapshot_.queues[job->queue].name,
                                  gpus > 0 ? fmt::format(" ({} GPU{})", gpus, Plural(gpus)) : ""));
      return;
    }
  }

  void MoreNodes() {
    for (size_t pool = 0; pool < snapshot_.pools.size(); ++pool) {
      const Pool& facts = snapshot_.pools[pool];
      const auto more = Nearest(0, job_.min_workers, [&](int64_t nodes) {
        return [&facts, pool, nodes](Snapshot& world, Job&) {
          for (int64_t node = 0; node < nodes; ++node)
            world.nodes.push_back({.name = fmt::format("{}-more-{}", facts.name, node),
                                   .pool = static_cast<int>(pool),
                                   .capacity = facts.capacity,
                                   .labels = facts.labels,
                                   .spot = facts.spot});
        };
      });
      if (more)
        said_.push_back(
            fmt::format("with {} more node{} of pool {}", *more, Plural(*more), facts.name));
    }
  }

  const Snapshot& snapshot_;
  const Job& job_;
  const Shape& shape_;
  const ScheduleOptions& options_;
  int left_;
  std::vector<std::string> said_;
};

}  // namespace

std::vector<std::string> ChangesThatStart(const Snapshot& snapshot, JobId job,
                                          const ScheduleOptions& options, int max_trials) {
  return Trials(snapshot, job, options, max_trials).Run();
}

}  // namespace renzan::cluster
