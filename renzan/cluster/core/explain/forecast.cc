#include "renzan/cluster/core/explain/forecast.h"

#include <algorithm>

namespace renzan::cluster {
namespace {

constexpr TimeMs kLeastRemaining = 60'000;
constexpr TimeMs kStartedJobRuns = 3'600'000;

TimeMs EndOf(const Job& job, TimeMs now) {
  if (job.expected_end) return std::max(*job.expected_end, now);
  return now + std::max(now - job.started, kLeastRemaining);
}

// An environment in which decisions take effect immediately.
class Future {
 public:
  Future(const Snapshot& snapshot, const ScheduleOptions& options, CycleBudget& budget)
      : snapshot_(snapshot), options_(options), budget_(budget) {
    for (Job& job : snapshot_.jobs) {
      known_.push_back(job.expected_end.has_value());
      if (job.state == JobState::kRunning) job.expected_end = EndOf(job, snapshot_.now);
    }
  }

  TimeMs now() const { return snapshot_.now; }

  // Runs cycles until nothing changes. Returns whether `job` starts.
  bool Settle(JobId job) {
    constexpr int kMaxCycles = 20;
    for (int cycle = 0; cycle < kMaxCycles && budget_.Spend(); ++cycle) {
      const Decisions decisions = Schedule(snapshot_, options_);
      bool changed = false;
      for (const Stop& stop : decisions.stops) changed |= StopNow(stop);
      for (const Resize& resize : decisions.resizes) {
        snapshot_.Find(resize.job)->placement = resize.target;
        snapshot_.Find(resize.job)->last_resize = snapshot_.now;
        changed = true;
      }
      for (const Start& start : decisions.starts) {
        if (start.job == job) return true;
        StartNow(start);
        changed = true;
      }
      if (!changed) return false;
    }
    return false;
  }

  // Finishes one stop or resize if there is one, else ends the job that ends first; booting nodes
  // become ready. False: no job holds resources.
  bool EndNext(int& assumed) {
    for (Node& node : snapshot_.nodes)
      if (node.state == NodeState::kBooting) node.state = NodeState::kReady;
    Job* next = nullptr;
    for (Job& job : snapshot_.jobs) {
      if (job.state == JobState::kStopping || job.state == JobState::kResizing) {
        next = &job;
        break;
      }
      if (job.state == JobState::kRunning && (!next || *job.expected_end < *next->expected_end))
        next = &job;
    }
    if (next == nullptr) return false;
    if (next->state != JobState::kRunning) {
      Settled(*next);
      return true;
    }
    snapshot_.now = std::max(snapshot_.now, *next->expected_end);
    const size_t at = next - snapshot_.jobs.data();
    assumed += !known_[at];
    snapshot_.jobs.erase(snapshot_.jobs.begin() + at);
    known_.erase(known_.begin() + at);
    return true;
  }

 private:
  bool StopNow(const Stop& stop) {
    Job& job = *snapshot_.Find(stop.job);
    snapshot_.now += job.grace_ms;
    job.state = JobState::kPending;
    job.placement.clear();
    return true;
  }

  void StartNow(const Start& start) {
    Job& job = *snapshot_.Find(start.job);
    job.state = JobState::kRunning;
    job.placement = start.placement;
    job.backfilled = start.backfill;
    job.started = job.last_resize = snapshot_.now;
    job.expected_end = snapshot_.now + kStartedJobRuns;
    known_[&job - snapshot_.jobs.data()] = false;
  }

  void Settled(Job& job) {
    const bool resizes = job.state == JobState::kResizing;
    job.state = resizes ? JobState::kRunning : JobState::kPending;
    job.placement = resizes ? job.target : Placement{};
    job.target.clear();
    job.stopping_for = 0;
    if (resizes && !job.expected_end) job.expected_end = EndOf(job, snapshot_.now);
  }

  Snapshot snapshot_;
  const ScheduleOptions& options_;
  CycleBudget& budget_;
  std::vector<bool> known_;  // by job: its end is known, not assumed
};

}  // namespace

std::optional<Forecast> ForecastStart(const Snapshot& snapshot, JobId job,
                                      const ScheduleOptions& options, CycleBudget& budget,
                                      int max_ends) {
  Future future(snapshot, options, budget);
  Forecast forecast{snapshot.now};
  for (int end = 0; end <= max_ends; ++end) {
    if (future.Settle(job)) {
      forecast.start = future.now();
      return forecast;
    }
    if (budget.exhausted() || !future.EndNext(forecast.ends_assumed)) return std::nullopt;
    ++forecast.ends_awaited;
  }
  return std::nullopt;
}

}  // namespace renzan::cluster
