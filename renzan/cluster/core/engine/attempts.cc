#include "renzan/cluster/core/engine/attempts.h"

#include <algorithm>
#include <utility>

#include "renzan/cluster/core/engine/gang.h"

namespace renzan::cluster {
namespace {

// After an attempt this long, fruitless requeues are counted anew.
constexpr TimeMs kFruitfulMs = 600'000;

RecordState StateOf(JobState state) {
  switch (state) {
    case JobState::kPending:
      return RecordState::kPending;
    case JobState::kRunning:
      return RecordState::kRunning;
    case JobState::kStopping:
      return RecordState::kStopping;
    case JobState::kResizing:
      return RecordState::kResizing;
  }
  return RecordState::kPending;
}

void Record(const Job& job, JobFacts& facts) {
  facts.state = StateOf(job.state);
  facts.eligible_at = job.eligible_at;
  facts.last_resize = job.last_resize;
  facts.waiting_since = job.waiting_since;
  facts.attained_worker_ms = job.attained_worker_ms;
  facts.preemptions = job.preemptions;
  facts.reservation_yields = job.reservation_yields;
  facts.failed_on = job.failed_on;
}

}  // namespace

void BeginAttempt(const Job& job, NamedPlacement placement, JobFacts& facts,
                  AttemptFacts& attempt) {
  Record(job, facts);
  ++facts.attempts;
  if (!facts.first_started) facts.first_started = job.started;
  attempt = {
      .placement = std::move(placement), .started = job.started, .backfilled = job.backfilled};
}

void StopAttempt(const Job& job, const Snapshot& snapshot, const std::string& why, JobFacts& facts,
                 AttemptFacts& attempt) {
  Record(job, facts);
  attempt.target = WithNames(snapshot, job.target);
  attempt.stop_reason = why;
  attempt.stopping_for = job.stopping_for;
}

EndedAttempt EndAttempt(const AttemptEnd& end, const EndRules& rules, TimeMs now, Job& job,
                        JobFacts& facts, AttemptFacts& attempt) {
  const RunHistory history{.state = facts.state,
                           .cancel_requested = rules.cancelled,
                           .stop_reason = attempt.stop_reason,
                           .failures = facts.failures,
                           .requeues = facts.requeues,
                           .run_ms = facts.run_ms};
  EndedAttempt ended{.outcome = OutcomeOf(history, end, rules.retries)};
  const Outcome& outcome = ended.outcome;
  facts.run_ms += end.ran_ms;
  facts.failures += outcome.failure;
  facts.requeues = !outcome.requeue ? 0 : end.ran_ms >= kFruitfulMs ? 1 : facts.requeues + 1;
  if (HasRun(end.by)) facts.exit_code = end.exit_code;

  AttemptEnd blamed = end;
  // It may not be known which worker was the first.
  if (outcome.failure && blamed.failed_on.empty() && attempt.placement.size() == 1)
    blamed.failed_on = attempt.placement[0].node;
  ended.failed_early_on = FailedEarlyOn(blamed, outcome, rules.early_ms);

  RequeueGang(job, end.ended_ms);
  job.eligible_at = outcome.backoff_ms == 0 ? 0 : now + outcome.backoff_ms;
  if (!ended.failed_early_on.empty()) FailedEarly(job, ended.failed_early_on);
  attempt = {};
  Record(job, facts);
  if (!HasEnded(outcome.state)) return ended;
  facts.state = outcome.state;
  facts.ended = end.ended_ms;
  return ended;
}

TimeMs SteadyCheckpointCost(std::optional<TimeMs> before, TimeMs measured) {
  return std::max(measured, before.value_or(0) / 2);
}

void RestoreJob(const JobFacts& facts, const AttemptFacts& attempt, const Placement& placement,
                const Placement& target, Job& job) {
  job.waiting_since = facts.waiting_since;
  if (facts.state != RecordState::kPending) {
    StartGang(job, placement, attempt.backfilled, attempt.started);
    if (facts.state == RecordState::kResizing && target.size() == attempt.target.size())
      MoveGang(job, {job.id, target, attempt.stopping_for});
    else if (facts.state != RecordState::kRunning)
      EvictGang(job);
    job.stopping_for = attempt.stopping_for;
  }
  job.eligible_at = facts.eligible_at;
  job.last_resize = facts.last_resize;
  job.attained_worker_ms = facts.attained_worker_ms;
  job.preemptions = facts.preemptions;
  job.reservation_yields = facts.reservation_yields;
  job.failed_on = facts.failed_on;
  job.run_time = facts.run_time;
}

}  // namespace renzan::cluster
