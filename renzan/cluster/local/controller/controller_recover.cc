#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/recovered_job.h"

namespace renzan::cluster::local {

void Controller::Recover() {
  state_.snapshot.now = Now();
  last_job_ = store_.LastJob();
  usage_.Recover();
  last_turn_ = usage_.accounted_until();  // the clock should not be before that
  for (const QuotaOverrideRecord& record : store_.QuotaOverrides())
    if (record.quota_override.until > state_.snapshot.now)
      state_.snapshot.users[state_.snapshot.InternUser(record.user)].quota_overrides.push_back(
          record.quota_override);
  nodes_.Recover();
  pools_.Recover();
  for (JobRecord& record : store_.UnfinishedJobs()) RecoverJob(std::move(record));
}

void Controller::RecoverJob(JobRecord record) {
  if (record.state == RecordState::kCollecting) return collector_.Recover(record);
  auto [spec, job] = JobFromRecord(state_.snapshot, record);
  const JobId id = record.id;
  LiveJob& live = state_.live[id] = {.record = std::move(record), .spec = std::move(spec)};
  live.policy = RetryPolicyOf(live.spec);
  live.text_bytes = DropTexts(live.record);
  progress_.Recover(id, job);
  for (const AttemptRecord& attempt : store_.Attempts(id))
    if (!attempt.ended) live.attempt = attempt;
  retention_.JobRecovered(id, live.record.attempts);
  state_.snapshot.jobs.push_back(job);
  if (live.attempt) Adopt(live, state_.snapshot.jobs.back());
}

void Controller::Adopt(LiveJob& live, Job& job) {
  for (const NodeShare& share : live.attempt->placement)
    job.placement.push_back({nodes_.RecoverNodeOf(share, job), share.workers});
  std::sort(job.placement.begin(), job.placement.end(),
            [](const Placed& a, const Placed& b) { return a.node < b.node; });
  job.started = live.attempt->started;
  job.last_resize = live.record.last_resize;
  job.backfilled = live.attempt->backfilled;
  job.stopping_for = live.attempt->stopping_for;
  const RecordState state = live.record.state;
  job.state = state == RecordState::kRunning    ? JobState::kRunning
              : state == RecordState::kResizing ? JobState::kResizing
                                                : JobState::kStopping;
  for (const NodeShare& share : live.attempt->target) {
    const int node = nodes_.Find(share.node);
    if (node >= 0) job.target.push_back({node, share.workers});
  }
  if (job.target.size() < live.attempt->target.size()) {
    LogWarning("job {} cannot become what it was to be: the configuration has lost nodes", job.id);
    job.target.clear();
    job.state = JobState::kStopping;
  }

  const AttemptReport report = ReportOn(live);
  switch (report.phase) {
    case AttemptPhase::kNone:
      VoidAttempt(live, "the daemon ended before it was started");
      return;
    case AttemptPhase::kLost:
      // How long the machine has been off since is not running time.
      live.lost_at = std::max(usage_.accounted_until(), live.attempt->started);
      if (const auto& progress = progress_.Read(live, state_.snapshot.now))
        live.lost_at = std::max(*live.lost_at, progress->updated);
      live.lost_at = std::min(*live.lost_at, state_.snapshot.now);
      changed_.insert(job.id);
      break;
    case AttemptPhase::kEnded:
      changed_.insert(job.id);
      break;
    case AttemptPhase::kStarting:
    case AttemptPhase::kRunning:
      if (report.supervisor > 0)
        state_.watched[job.id] = report.supervisor;
      else
        changed_.insert(job.id);  // it is looked at until it says who it is
      break;
  }
  const bool lives =
      report.phase == AttemptPhase::kStarting || report.phase == AttemptPhase::kRunning;
  bool lost = false;
  for (const Placed& placed : Placement(job.placement)) {
    if (!nodes_.IsGone(placed.node)) continue;
    lost = true;
    nodes_.RecoverGone(placed.node);
    if (lives && !EndOnFailedNode(live, state_.snapshot.nodes[placed.node].name))
      unsent_failures_.insert(placed.node);
  }
  // The daemon before may have ended between writing it down and doing it.
  if (lives && !lost && (state == RecordState::kStopping || state == RecordState::kResizing))
    AskToStop(live);
}

}  // namespace renzan::cluster::local
