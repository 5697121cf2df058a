// JobRunner, after a restart of the daemon: jobs that run, or ran when it ended.

#include <algorithm>
#include <vector>

#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/attempts.h"
#include "renzan/cluster/local/controller/job_runner.h"

namespace renzan::cluster::local {

void JobRunner::Adopt(LiveRecord& live) {
  Job& job = *state_.snapshot.Find(live.record.id);
  Restore(live, job);
  if (!live.record.attempt) return;
  const RecordState state = live.record.state;
  const Placement placement = job.placement;
  const AttemptReport report = Report(live);
  if (report.phase == AttemptPhase::kNone)
    return Finish(live, EndWithoutStart(live, "the daemon ended before the attempt was started"));
  const bool alive = IsAlive(report.phase);
  if (alive && report.supervisor > 0)
    state_.watched[job.id] = report.supervisor;
  else
    to_check_.insert(job.id);
  if (report.phase == AttemptPhase::kLost) {
    // The machine may have been off since then: that is not running time.
    TimeMs last_seen = std::max(log_.accounted_until(), live.record.attempt->started);
    if (const auto& progress = progress_.Read(live, state_.snapshot.now))
      last_seen = std::max(last_seen, progress->updated);
    live.lost_at = std::min(last_seen, state_.snapshot.now);
  }
  bool node_failed = false;
  for (const Placed& placed : placement) {
    if (!nodes_.IsGone(placed.node)) continue;
    node_failed = true;
    nodes_.RecoverGone(placed.node);
    if (alive && !EndOnFailedNode(live, state_.snapshot.nodes[placed.node].name))
      unsent_.insert(placed.node);
  }
  if (alive && MayHaveAnotherLimit(live)) SendTimeLimit(live);
  // The previous daemon may have been killed between committing the stop and requesting it.
  if (alive && !node_failed && (state == RecordState::kStopping || state == RecordState::kResizing))
    SendStop(live);
}

// The previous daemon may have been killed before it told the supervisor.
bool JobRunner::MayHaveAnotherLimit(const LiveRecord& live) const {
  const std::vector<EventRecord> events = store_.Events(live.record.id);
  return std::any_of(events.begin(), events.end(),
                     [](const EventRecord& event) { return event.kind == kUpdatedEvent; });
}

void JobRunner::Restore(const LiveRecord& live, Job& job) {
  AttemptFacts attempt;
  if (live.record.attempt) attempt = *live.record.attempt;
  Placement placement, target;
  for (const NodeShare& share : attempt.placement)
    placement.push_back({nodes_.RecoverNodeOf(share, job), share.workers});
  std::sort(placement.begin(), placement.end(),
            [](const Placed& a, const Placed& b) { return a.node < b.node; });
  for (const NodeShare& share : attempt.target)
    if (const int node = nodes_.Find(share.node); node >= 0)
      target.push_back({node, share.workers});
  if (target.size() < attempt.target.size())
    LogWarning("job {} is not resized: the configuration no longer has all nodes of its target",
               job.id);
  RestoreJob(live.record, attempt, placement, target, job);
}

}  // namespace renzan::cluster::local
