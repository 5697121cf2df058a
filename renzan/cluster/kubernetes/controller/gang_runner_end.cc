// How attempts end, and what that means for their jobs.

#include <algorithm>
#include <tuple>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/gang_runner.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"

namespace renzan::cluster::kubernetes {
namespace {

// How the attempt ended, in a word for metrics.
const char* EndWord(const AttemptEnd& end, const Outcome& outcome) {
  if (HasEnded(outcome.state)) return NameOf(outcome.state);
  if (end.by == EndedBy::kNodeFailed) return "node_failed";
  if (end.by == EndedBy::kNeverStarted) return "cannot_start";
  if (outcome.failure) return "failed";
  if (outcome.requeue) return "requeued";
  return outcome.state == RecordState::kResizing ? "resized" : "stopped";
}

// Whether all have ended with 0, and not because they were told to stop. The server's times have a
// resolution of seconds: if a worker ended in the second in which it was told, the workers that
// were not told decide.
bool EndedByItself(const std::vector<Worker>& workers) {
  bool any_for_sure = false;
  for (const Worker& worker : workers) {
    if (!worker.pod || !worker.pod->ended || worker.pod->exit_code != 0) return false;
    const auto &told = worker.pod->told_at, &finished = worker.pod->finished;
    if (worker.ended_by_itself || !told || finished < told)
      any_for_sure = true;
    else if (finished != told)
      return false;
  }
  return any_for_sure;
}

}  // namespace

const Worker* FirstFailed(const std::vector<Worker>& workers) {
  const auto key = [](const Worker& worker) {
    const Pod& pod = *worker.pod;
    // A worker that its node has not even admitted was not there from the beginning.
    const TimeMs finished = pod.finished.value_or(pod.refused ? 0 : kNever);
    return std::tuple(pod.told_at && !worker.ended_by_itself, finished, -Severity(pod.exit_code));
  };
  const Worker* first = nullptr;
  for (const Worker& worker : workers)
    if (worker.pod && worker.pod->ended && worker.pod->exit_code != 0 &&
        (first == nullptr || key(worker) < key(*first)))
      first = &worker;
  return first;
}

// Measures the time from the stop request until the last worker had saved its work. A worker that
// was killed at the end of its grace period needs more than that.
void GangRunner::MeasureCheckpoint(LiveGang& live) {
  if (!live.object.spec.checkpoint.on_stop) return;
  TimeMs cost = 0;
  for (const Worker& worker : live.workers) {
    if (!worker.pod || !worker.pod->told_at || !worker.pod->finished) return;
    const Pod& pod = *worker.pod;
    const TimeMs took = *pod.finished - *pod.told_at;
    const bool killed = pod.exit_code == kKilledExitCode && pod.reason != "OOMKilled" &&
                        took >= live.object.spec.grace_ms();
    // A worker that ended before it was told, or failed, has saved nothing.
    if (took < 0 || (!killed && pod.exit_code != 0 && pod.exit_code != kSavedExitCode)) return;
    cost = std::max(cost, killed ? live.object.spec.grace_ms() + 1 : took);
  }
  std::optional<TimeMs>& known = live.object.status.checkpoint_cost;
  known = SteadyCheckpointCost(known, cost);
}

// Of an attempt all of whose workers have ended.
AttemptEnd GangRunner::EndOf(const LiveGang& live, const Job& job) const {
  const GangJobStatus& status = live.object.status;
  // A gang may have ended by itself before it was told to stop, or before its node failed.
  const bool undisturbed = EndedByItself(live.workers);
  AttemptEnd end{.message = undisturbed || live.end_message.empty() ? "all workers exited with 0"
                                                                    : live.end_message};
  if (undisturbed)
    end.by = EndedBy::kItself;
  else
    // An earlier leader may have told it to stop without recording why.
    end.by = live.ended_by.value_or(
        status.stop_reason.empty() && status.state == RecordState::kRunning ? EndedBy::kItself
                                                                            : EndedBy::kRequest);
  const TimeMs now = Now();
  TimeMs last = 0;
  for (const Worker& worker : live.workers) {
    if (worker.pod && worker.pod->ended)
      last = std::max(last, worker.pod->finished.value_or(now));
    else
      end.exit_code = 137;
  }
  if (const Worker* failed = FirstFailed(live.workers)) {
    end.exit_code = live.first_exit_code.value_or(failed->pod->exit_code);
    end.failed_on = failed->node;
  }
  if (live.never_started) end.exit_code = 137;
  end.started_ms = job.started;
  end.ended_ms = last == 0 ? now : std::clamp(last, job.started, std::max(job.started, now));
  end.ran_ms = end.ended_ms - job.started;
  return end;
}

void GangRunner::Finish(LiveGang& live) {
  changed_ = true;
  const JobId id = live.object.status.id;
  const AttemptEnd end = EndOf(live, *snapshot_.Find(id));
  MeasureCheckpoint(live);
  lifecycle_.Finish(id, end, {live.policy, live.object.cancelled, kEarlyFailureMs}, Now(),
                    /*may_restart=*/!live.edited && !live.deleted);
  if (live.deleted) Remove(id);
}

void GangRunner::CommitEnd(LiveGang& live, const Transition& transition) {
  const Outcome& outcome = transition.ended->outcome;
  ++attempt_ends_[EndWord(*transition.end, outcome)];
  if (live.deleted) {
    to_write_.erase(transition.job);
    return;
  }
  live.object.status.reason.clear();
  live.object.status.message = outcome.text;
  if (HasEnded(outcome.state))
    Tell(live, outcome.state == RecordState::kDone ? "Done" : "Ended", outcome.text,
         outcome.state == RecordState::kFailed || outcome.state == RecordState::kTimeout);
  else
    Tell(live, "Requeued", outcome.text, outcome.failure);
}

void GangRunner::Ended(JobId id, const Placement& placement, const EndedAttempt& how) {
  LiveGang& live = live_.at(id);
  Job& job = *snapshot_.Find(id);
  for (const Placed& placed : placement) snapshot_.nodes[placed.node].idle_since = Now();
  ApplyEstimates(live.object, job);
  // It leaves the queue at once, and is forgotten when that has been written.
  if (HasEnded(how.outcome.state)) job.held = "it has ended";
  live.last_workers = std::exchange(live.workers, {});
  live.created = live.started = live.never_started = false;
  live.start_trouble.clear();
  live.ended_by.reset();
  live.first_exit_code.reset();
  live.end_message.clear();
}

}  // namespace renzan::cluster::kubernetes
