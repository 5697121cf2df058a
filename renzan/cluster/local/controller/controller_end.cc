#include <algorithm>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {
namespace {

// An attempt that ran for so long has got somewhere: requeues are counted anew.
constexpr TimeMs kProgressMs = 600'000;

}  // namespace

void Controller::FinishEnded() {
  struct Ended {
    TimeMs time;
    JobId job;
    std::optional<AttemptEnd> end;
  };
  std::vector<Ended> ended;
  std::vector<JobId> never_began;
  const std::set<JobId> changed = std::exchange(changed_, {});
  for (const JobId id : changed) {
    const auto at = state_.live.find(id);
    if (at == state_.live.end() || !at->second.attempt) continue;
    LiveJob& live = at->second;
    const AttemptReport report = ReportOn(live);
    if (report.phase == AttemptPhase::kStarting || report.phase == AttemptPhase::kRunning) {
      // It has been asked for too early.
      changed_.insert(id);
      state_.retry_at = state_.snapshot.now + 1000;
      if (live.stop_unsent) AskToStop(live);
      continue;
    }
    if (report.phase == AttemptPhase::kNone) {
      never_began.push_back(id);
      continue;
    }
    const TimeMs time =
        report.end ? report.end->ended_ms : live.lost_at.value_or(state_.snapshot.now);
    ended.push_back({time, id, report.end});
  }
  changed_.insert(never_began.begin(), never_began.end());
  for (const Ended& each : ended) changed_.insert(each.job);
  for (const JobId id : never_began) VoidAttempt(state_.live.at(id), "it could not be started");
  // In the order in which they ended, so that every moment is accounted to who ran then.
  std::sort(ended.begin(), ended.end(),
            [](const Ended& a, const Ended& b) { return a.time < b.time; });
  for (const Ended& each : ended) {
    Finish(state_.live.at(each.job), each.end);
    changed_.erase(each.job);
  }
}

// What cannot be looked at now counts as running, and is looked at again.
AttemptReport Controller::ReportOn(const LiveJob& live) {
  try {
    return agent_.Report(directories_.OfAttempt(live.record.id, live.attempt->number));
  } catch (const Error& error) {
    LogWarning("job {}: {}", live.record.id, error.what());
    return {.phase = AttemptPhase::kRunning};
  }
}

void Controller::KillLeftOvers(JobId job, const std::string& directory) {
  try {
    if (const int left = agent_.CleanUp(directory); left > 0)
      LogWarning("job {}: killed {} processes that its supervisor left behind", job, left);
  } catch (const Error& error) {
    LogWarning("job {}: nobody knows what its supervisor left behind: {}", job, error.what());
  }
}

void Controller::Finish(LiveJob& live, const std::optional<AttemptEnd>& end) {
  const JobId id = live.record.id;
  const std::string directory = directories_.OfAttempt(id, live.attempt->number);
  if (!end) KillLeftOvers(id, directory);
  const Outcome outcome = end ? OutcomeOf(live.record, *live.attempt, *end, live.policy)
                              : OutcomeOfLost(live.record, live.policy);
  if (end) progress_.MeasureEnd(live, *end);
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  const TimeMs ended = end ? end->ended_ms : live.lost_at.value_or(state_.snapshot.now);
  const TimeMs ran = end ? end->ran_ms : std::max<TimeMs>(0, ended - attempt.started);
  attempt.ended = ended;
  attempt.ended_by = end ? NameOf(end->by) : "lost";
  attempt.message = end ? end->message : outcome.text;
  if (end) attempt.exit_code = record.exit_code = end->exit_code;
  record.message = attempt.message;
  record.run_ms += ran;
  record.failures += outcome.failure;
  record.requeues = !outcome.requeue ? 0 : ran >= kProgressMs ? 1 : record.requeues + 1;
  record.eligible_at = state_.snapshot.now + outcome.backoff_ms;
  record.state = HasEnded(outcome.state) ? outcome.state : RecordState::kPending;
  CollectionRecord then{.job = id, .becomes = record.state, .ended = ended, .text = outcome.text};
  const bool collects = HasEnded(record.state) && !ArtifactsPathOf(live.spec).empty();
  if (collects) {
    record.state = RecordState::kCollecting;
    log_.Commit(record, attempt, NameOf(record.state),
                fmt::format("{}; its artifacts are being collected", outcome.text),
                std::min(ended, state_.snapshot.now), &then);
  } else {
    if (HasEnded(record.state)) record.ended = ended;
    log_.Commit(record, attempt, NameOf(record.state), outcome.text,
                std::min(ended, state_.snapshot.now));
  }

  live.record = record;
  live.attempt.reset();
  progress_.AttemptEnded(id);
  live.lost_at.reset();
  state_.watched.erase(id);
  Job* job = state_.snapshot.Find(id);
  job->eligible_at = outcome.backoff_ms == 0 ? 0 : record.eligible_at;
  const Placement target = job->target;
  Release(*job);
  if (HasEnded(outcome.state)) {
    const std::string from = ArtifactsPathOf(live.spec);
    Drop(id);
    if (collects) collector_.Start(record, then, from);
  } else if (outcome.state == RecordState::kResizing && !target.empty() && Fits(*job, target)) {
    StartJob(live, target, false);
  }
}

bool Controller::Fits(const Job& job, const Placement& placement) const {
  const Resources& per_worker = state_.snapshot.worker_requests[job.request].per_worker;
  return std::all_of(placement.begin(), placement.end(), [&](const Placed& placed) {
    const Node& node = state_.snapshot.nodes[placed.node];
    return node.state == NodeState::kReady &&
           (UsedOn(state_.snapshot, placed.node) + per_worker * placed.workers)
               .FitsIn(node.capacity);
  });
}

// Its nodes are free again.
void Controller::Release(Job& job) {
  const Placement placement = std::exchange(job.placement, {});
  job.target.clear();
  job.state = JobState::kPending;
  job.stopping_for = 0;
  job.backfilled = false;
  job.last_checkpoint.reset();
  job.expected_end.reset();
  state_.watched.erase(job.id);
  for (const Placed& placed : placement) {
    if (InUse(state_.snapshot, placed.node)) continue;
    unsent_failures_.erase(placed.node);
    nodes_.Vacated(placed.node);
  }
}

void Controller::Drop(JobId job) {
  waits_.erase(job);
  progress_.Remove(job);
  state_.RemoveJob(job);
}

}  // namespace renzan::cluster::local
