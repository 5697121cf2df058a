#include "renzan/cluster/core/engine/lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/cluster/core/engine/gang.h"

namespace renzan::cluster {

using Kind = Transition::Kind;

bool Lifecycle::CarryOut(const Decisions& decisions) {
  return cluster::CarryOut(decisions, snapshot_, *this);
}

void Lifecycle::Stop(JobId job, const std::string& user) {
  cluster::CarryOut(cluster::Stop{job, StopReason::kRequested, 0, user}, snapshot_, *this);
}

void Lifecycle::Commit(const cluster::Start& start) {
  // Carrying out decisions takes time, which must not count as running.
  const TimeMs now = snapshot_.now = clock_.UnixMs();
  Job after = *snapshot_.Find(start.job);
  StartGang(after, start.placement, start.backfill, now);
  Transition transition{
      .kind = Kind::kStarted, .job = start.job, .facts = journal_.FactsOf(start.job), .when = now};
  BeginAttempt(after, workers_.Assign(after, start.placement), transition.facts,
               transition.attempt);
  transition.text = fmt::format("attempt {} on {}", transition.facts.attempts - 1,
                                Describe(transition.attempt.placement));
  journal_.Commit(transition);
}

void Lifecycle::Commit(const cluster::Stop& stop) {
  Job after = *snapshot_.Find(stop.job);
  StopGang(after, stop);
  CommitStop(Kind::kStopping, after, TextOf(stop), TextOf(stop));
}

void Lifecycle::Commit(const Resize& resize) {
  Job after = *snapshot_.Find(resize.job);
  MoveGang(after, resize);
  const std::string text = TextOf(resize, snapshot_);
  CommitStop(Kind::kResizing, after, text, text);
}

void Lifecycle::Commit(const std::vector<Reservation>& reservations) {
  std::vector<std::pair<JobId, NamedPlacement>> named;
  for (const Reservation& each : reservations)
    named.emplace_back(each.job, WithNames(snapshot_, each.placement));
  journal_.Commit(named, NoLongerBackfilled(reservations, snapshot_));
}

void Lifecycle::CommitStop(Kind kind, const Job& after, const std::string& reason,
                           const std::string& text) {
  Transition transition{.kind = kind,
                        .job = after.id,
                        .facts = journal_.FactsOf(after.id),
                        .attempt = journal_.AttemptOf(after.id),
                        .text = text,
                        .when = clock_.UnixMs()};
  StopAttempt(after, snapshot_, reason, transition.facts, transition.attempt);
  journal_.Commit(transition);
}

void Lifecycle::Evict(JobId id, const std::string& why) {
  Job& job = *snapshot_.Find(id);
  Job after = job;
  EvictGang(after);
  CommitStop(Kind::kEvicted, after, why, why);
  job = std::move(after);
}

RecordState Lifecycle::Cancel(JobId id, const std::string& why) {
  Job& job = *snapshot_.Find(id);
  if (job.state == JobState::kPending) {
    Transition transition{.kind = Kind::kCancelled,
                          .job = id,
                          .facts = journal_.FactsOf(id),
                          .text = why,
                          .when = clock_.UnixMs()};
    transition.facts.state = RecordState::kCancelled;
    transition.facts.ended = transition.when;
    journal_.Commit(transition);
    return RecordState::kCancelled;
  }
  Job after = job;
  EvictGang(after);
  // Why it was stopped before stays the reason.
  CommitStop(Kind::kCancelling, after, journal_.AttemptOf(id).stop_reason, why);
  job = std::move(after);
  workers_.Stop(id);
  return journal_.FactsOf(id).state;
}

EndedAttempt Lifecycle::Finish(JobId id, const AttemptEnd& end, const EndRules& rules, TimeMs now,
                               bool may_restart) {
  Job& job = *snapshot_.Find(id);
  Job after = job;
  Transition transition{.kind = Kind::kEnded,
                        .job = id,
                        .facts = journal_.FactsOf(id),
                        .attempt = journal_.AttemptOf(id),
                        .when = std::min(end.ended_ms, now),
                        .end = &end};
  const EndedAttempt ended =
      EndAttempt(end, rules, now, after, transition.facts, transition.attempt);
  transition.text = ended.outcome.text;
  transition.ended = &ended;
  journal_.Commit(transition);
  const cluster::Start restart{id, job.target, job.backfilled};
  const Placement placement = job.placement;
  job = std::move(after);
  workers_.Ended(id, placement, ended);
  if (ended.outcome.state == RecordState::kResizing && may_restart &&
      HasRoom(job, restart.placement))
    cluster::CarryOut(restart, snapshot_, *this);
  return ended;
}

bool Lifecycle::HasRoom(const Job& job, const Placement& placement) const {
  const Resources& per_worker = snapshot_.worker_requests[job.request].per_worker;
  return !placement.empty() && std::ranges::all_of(placement, [&](const Placed& placed) {
    const Resources* offered = workers_.Offered(placed.node);
    return offered != nullptr && snapshot_.nodes[placed.node].state == NodeState::kReady &&
           (UsedOn(snapshot_, placed.node) + per_worker * placed.workers).FitsIn(*offered);
  });
}

}  // namespace renzan::cluster
