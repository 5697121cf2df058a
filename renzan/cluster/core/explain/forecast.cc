#include "renzan/cluster/core/explain/forecast.h"

#include <algorithm>
#include <map>

#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/predict/run_times.h"

namespace renzan::cluster {
namespace {

// How much longer a job will run: as half of the jobs like it. If nothing is known, it is taken to
// run for an hour, or for as long again as so far.
TimeMs Remaining(const Job& job, TimeMs now) {
  const TimeMs progress = ProgressOf(job, now);
  if (job.run_time.back() > 0) return LikelyRemaining(job.run_time, progress);
  return std::max(kHour - progress, progress);
}

TimeMs EndOf(const Job& job, TimeMs now) {
  if (job.state == JobState::kPending) return kNever;
  if (job.expected_end) return std::max(*job.expected_end, now);
  return now + Remaining(job, now);
}

// An environment in which stops and boots take the time they may take, and nothing fails.
class Future : private Environment {
 public:
  Future(const Snapshot& snapshot, JobId job, const ScheduleOptions& options, CycleBudget& budget)
      : snapshot_(snapshot), job_(job), options_(options), budget_(budget) {
    // Interruptions are random and not part of the question.
    for (Pool& pool : snapshot_.pools) pool.interruptions_per_hour = 0;
    for (const Job& each : snapshot_.jobs)
      ends_[each.id] = {EndOf(each, snapshot_.now), each.expected_end.has_value()};
  }

  TimeMs now() const { return snapshot_.now; }
  bool job_has_started() const { return started_; }

  // Runs cycles until nothing changes, the job starts, or the budget is spent.
  void Settle() {
    constexpr int kMaxCycles = 20;
    for (int cycle = 0; cycle < kMaxCycles && !started_ && budget_.Spend(); ++cycle)
      if (!CarryOut(Schedule(snapshot_, options_), snapshot_, *this)) break;
  }

  // Advances to the next event: a stop or a boot completes, a job ends, or the awaited job's
  // back-off is over. False: nothing more will happen.
  bool Advance(Forecast& forecast) {
    const Event next = NextEvent();
    if (next.time == kNever) return false;
    snapshot_.now = std::max(snapshot_.now, next.time);
    if (next.node >= 0)
      snapshot_.nodes[next.node].state = NodeState::kReady;
    else
      Finish(*snapshot_.Find(next.job), forecast);
    return true;
  }

 private:
  struct End {
    TimeMs time;
    bool known;  // otherwise assumed
  };
  struct Event {
    TimeMs time;
    JobId job;
    int node;
  };

  void Perform(const Start& start) override {
    started_ |= start.job == job_;
    const Job& job = *snapshot_.Find(start.job);
    ends_[start.job] = {snapshot_.now + Remaining(job, snapshot_.now), false};
  }
  void Perform(const Stop& stop) override { Leaves(stop.job); }
  void Perform(const Resize& resize) override { Leaves(resize.job); }
  void Perform(const CheckpointRequest&) override {}
  void Perform(const NodeChange&) override {}

  void Leaves(JobId id) {
    const Job& job = *snapshot_.Find(id);
    const TimeMs takes = job.checkpoints ? std::min(job.checkpoint_cost_ms, job.grace_ms) : 0;
    leaves_at_[id] = snapshot_.now + takes;
  }

  TimeMs NextOf(const Job& job) const {
    if (job.state == JobState::kPending)
      return job.id == job_ && job.eligible_at > snapshot_.now ? job.eligible_at : kNever;
    if (job.state == JobState::kRunning) return ends_.at(job.id).time;
    const auto leaves = leaves_at_.find(job.id);  // jobs told to stop before the forecast leave now
    return leaves == leaves_at_.end() ? snapshot_.now : leaves->second;
  }

  Event NextEvent() const {
    Event next{kNever, 0, -1};
    for (const Job& job : snapshot_.jobs)
      if (const TimeMs time = NextOf(job); time < next.time) next = {time, job.id, -1};
    for (size_t node = 0; node < snapshot_.nodes.size(); ++node)
      if (const Node& each = snapshot_.nodes[node];
          each.state == NodeState::kBooting && each.until < next.time)
        next = {each.until, 0, static_cast<int>(node)};
    return next;
  }

  void Finish(Job& job, Forecast& forecast) {
    if (job.state == JobState::kPending) return;
    leaves_at_.erase(job.id);
    if (job.state == JobState::kStopping) return RequeueGang(job, snapshot_.now);
    if (job.state == JobState::kResizing) return RestartGang(job, snapshot_.now);
    ++forecast.ends_awaited;
    forecast.ends_assumed += !ends_.at(job.id).known;
    snapshot_.jobs.erase(snapshot_.jobs.begin() + (&job - snapshot_.jobs.data()));
  }

  Snapshot snapshot_;
  const JobId job_;
  const ScheduleOptions& options_;
  CycleBudget& budget_;
  std::map<JobId, End> ends_;  // while running
  std::map<JobId, TimeMs> leaves_at_;
  bool started_ = false;
};

}  // namespace

std::optional<Forecast> ForecastStart(const Snapshot& snapshot, JobId job,
                                      const ScheduleOptions& options, CycleBudget& budget,
                                      int max_ends) {
  Future future(snapshot, job, options, budget);
  Forecast forecast{snapshot.now};
  while (forecast.ends_awaited <= max_ends && !budget.exhausted()) {
    future.Settle();
    if (future.job_has_started()) {
      forecast.start = future.now();
      return forecast;
    }
    if (!future.Advance(forecast)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace renzan::cluster
