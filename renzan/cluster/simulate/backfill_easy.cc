// EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", 1995) with exact run times: an upper
// bound for schedulers that rely on wall-time estimates, such as Slurm's backfill plugin.

#include <algorithm>
#include <limits>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

struct Release {
  TimeMs time;
  JobId job;
  int request;
  Placement placement;
  bool operator<(const Release& other) const {
    return std::pair(time, job) < std::pair(other.time, other.job);
  }
};

class EasyBackfill : public SimulatedPolicy {
 public:
  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output;
    output.decisions.stops = StopOnLeavingNodes(input.snapshot);
    Room room(input.snapshot, input.free);
    size_t head = 0;
    for (; head < input.pending.size(); ++head) {
      const PendingJob& job = input.pending[head];
      auto placement =
          room.Place(input.snapshot.worker_requests[job.request], job.min_workers, job.max_workers);
      if (!placement) break;
      output.decisions.starts.push_back({job.job, std::move(*placement)});
    }
    if (head + 1 < input.pending.size()) Overtake(input, head, room, output.decisions.starts);
    return output;
  }

 private:
  // When each running job will end, soonest first.
  static std::vector<Release> Releases(const PolicyInput& input, const std::vector<Start>& starts) {
    std::vector<Release> releases;
    const TimeMs now = input.snapshot.now;
    for (const Job& job : input.snapshot.jobs) {
      if (job.state == JobState::kRunning)
        releases.push_back({input.end_time(job.id), job.id, job.request, job.placement});
      if (job.state == JobState::kStopping)
        releases.push_back({now + job.grace_ms, job.id, job.request, job.placement});
    }
    for (const Start& start : starts) {
      const Job& job = *input.snapshot.Find(start.job);
      releases.push_back({now + input.run_time(job.id, NumWorkers(start.placement)), job.id,
                          job.request, start.placement});
    }
    std::sort(releases.begin(), releases.end());
    return releases;
  }

  // Advances `room` to the time at which the head of the pending queue fits, and places it there.
  // Returns that time; kNever if it never fits.
  static TimeMs Reserve(const PolicyInput& input, const PendingJob& head,
                        const std::vector<Start>& starts, Room& room) {
    const WorkerRequest& request = input.snapshot.worker_requests[head.request];
    const int64_t needs = head.min_workers;
    int64_t fitting = 0;
    for (size_t node = 0; node < input.free.size(); ++node)
      fitting += room.CountFitting(static_cast<int>(node), request, needs);
    for (const Release& release : Releases(input, starts)) {
      const Resources& per_worker = input.snapshot.worker_requests[release.request].per_worker;
      for (const Placed& placed : release.placement) {
        fitting -= room.CountFitting(placed.node, request, needs);
        room.Give(placed.node, per_worker * placed.workers);
        fitting += room.CountFitting(placed.node, request, needs);
      }
      if (fitting < needs) continue;
      room.Place(request, head.min_workers, head.min_workers);
      return release.time;
    }
    return kNever;
  }

  // Starts jobs behind the head that end before it can start, or do not use its resources.
  static void Overtake(const PolicyInput& input, size_t head, Room& room,
                       std::vector<Start>& starts) {
    Room later = room;
    const TimeMs shadow = Reserve(input, input.pending[head], starts, later);
    Room both = room;
    for (size_t node = 0; node < input.free.size(); ++node)
      both.LimitTo(static_cast<int>(node), later);
    std::vector<int> too_many(input.snapshot.worker_requests.size(),
                              std::numeric_limits<int>::max());
    std::vector<int> too_many_long = too_many;
    for (size_t place = head + 1; place < input.pending.size(); ++place) {
      const PendingJob& job = input.pending[place];
      if (job.min_workers >= too_many[job.request]) continue;
      const WorkerRequest& request = input.snapshot.worker_requests[job.request];
      const auto ends_in_time = [&](int workers) {
        return shadow == kNever || input.snapshot.now + input.run_time(job.job, workers) <= shadow;
      };
      std::optional<Placement> placement;
      if (ends_in_time(job.max_workers)) {
        placement = room.Place(request, job.min_workers, job.max_workers);
        if (!placement) {
          too_many[job.request] = job.min_workers;
          continue;
        }
        if (ends_in_time(NumWorkers(*placement))) {
          for (const Placed& placed : *placement) {
            both.SetFree(placed.node, room.free(placed.node));
            both.LimitTo(placed.node, later);
          }
          starts.push_back({job.job, std::move(*placement)});
          continue;
        }
        for (const Placed& placed : *placement)
          room.Give(placed.node, request.per_worker * placed.workers);
      }
      if (job.min_workers >= too_many_long[job.request]) continue;
      placement = both.Place(request, job.min_workers, job.max_workers);
      if (!placement) {
        too_many_long[job.request] = job.min_workers;
        continue;
      }
      for (const Placed& placed : *placement) {
        room.Take(placed.node, request.per_worker * placed.workers);
        later.Take(placed.node, request.per_worker * placed.workers);
      }
      starts.push_back({job.job, std::move(*placement)});
    }
  }
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeEasyBackfill() { return std::make_unique<EasyBackfill>(); }

}  // namespace renzan::cluster::simulate
