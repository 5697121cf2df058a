#include "renzan/cluster/kubernetes/controller/gang_runner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"
#include "renzan/cluster/spec/retry_policy.h"

namespace renzan::cluster::kubernetes {
namespace {

std::vector<Worker> WorkersOf(const NamedPlacement& placement) {
  std::vector<Worker> workers;
  for (const NodeShare& share : placement)
    for (int i = 0; i < share.workers; ++i) workers.push_back({.node = share.node});
  return workers;
}

}  // namespace

GangRunner::GangRunner(std::string identity, size_t at_once, Snapshot& snapshot,
                       Inventory& inventory, PodBook& pods, Requests& requests, const Clock& clock)
    : identity_(std::move(identity)),
      at_once_(at_once),
      snapshot_(snapshot),
      inventory_(inventory),
      pods_(pods),
      requests_(requests),
      clock_(clock),
      lifecycle_(snapshot, *this, *this, clock) {}

LiveGang* GangRunner::FindByUid(const std::string& uid) {
  const auto at = by_uid_.find(uid);
  return at == by_uid_.end() ? nullptr : &live_.at(at->second);
}

// --- Jobs that come and go.

void GangRunner::Add(GangJob object, Job job) {
  const JobId id = job.id;
  const GangJobStatus& status = object.status;
  Restore(object, inventory_, Now(), snapshot_, job);
  LiveGang live{.policy = spec::RetryPolicyOf(object.spec)};
  if (job.state != JobState::kPending) {
    live.workers = WorkersOf(status.placement);
    live.adopted_at = Now();
  }
  live.object = std::move(object);
  by_uid_[live.object.uid] = id;
  live_.insert_or_assign(id, std::move(live));
  auto& jobs = snapshot_.jobs;
  jobs.insert(std::upper_bound(jobs.begin(), jobs.end(), job,
                               [](const Job& a, const Job& b) { return a.id < b.id; }),
              job);
  if (job.state == JobState::kPending) return;
  LiveGang& adopted = live_.at(id);
  if (const std::string node = LostNodeOf(adopted, job); !node.empty()) EndWithNode(adopted, node);
  Check(id);
}

std::string GangRunner::LostNodeOf(const LiveGang& live, const Job& job) const {
  for (const Placed& placed : job.placement) {
    const Node& node = snapshot_.nodes[placed.node];
    if (node.state != NodeState::kGone) continue;
    // If all workers of an attempt have ended, use their exit statuses.
    size_t ended = 0;
    for (const Pod* pod : pods_.OfJob(live.object.uid))
      ended += pod->attempt == live.object.status.attempts - 1 && pod->ended ? 1 : 0;
    return ended == live.workers.size() ? "" : node.name;
  }
  return "";
}

void GangRunner::Remove(const std::set<JobId>& ids) {
  if (ids.empty()) return;
  changed_ = true;
  for (const JobId id : ids) {
    const auto at = live_.find(id);
    by_uid_.erase(at->second.object.uid);
    live_.erase(at);
    to_start_.erase(id);
  }
  std::erase_if(snapshot_.jobs, [&](const Job& job) { return ids.contains(job.id); });
  std::erase_if(snapshot_.reservations,
                [&](const Reservation& each) { return ids.contains(each.job); });
}

void GangRunner::Cancel(JobId id, const std::string& why) {
  changed_ = true;
  live_.at(id).object.cancelled = true;
  if (lifecycle_.Cancel(id, why) == RecordState::kCancelled)
    snapshot_.Find(id)->held = "it has ended";
}

void GangRunner::ObjectDeleted(JobId id) {
  LiveGang& live = live_.at(id);
  live.deleted = true;
  if (snapshot_.Find(id)->state == JobState::kPending) {
    Remove(id);
    return;
  }
  // Its pods are deleted with it; they keep its room until they have ended.
  Cancel(id, "deleted");
  to_write_.erase(id);
  Check(id);
}

void GangRunner::RequestStop(JobId id, const std::string& why) { lifecycle_.Stop(id, why); }

void GangRunner::TellWait(JobId id, const std::string& reason, const std::string& message) {
  LiveGang& live = live_.at(id);
  GangJobStatus& status = live.object.status;
  live.wait_told_at = Now();
  if (status.reason == reason && status.message == message) return;
  status.reason = reason;
  status.message = message;
  to_write_.insert(id);
}

// --- Decisions.

void GangRunner::CarryOut(const Decisions& decisions) {
  lifecycle_.CarryOut(decisions);
  // A started job must be looked at earlier than one that waits.
  changed_ |= !decisions.starts.empty() || !decisions.stops.empty() || !decisions.resizes.empty();
}

void GangRunner::Commit(const Transition& transition) {
  LiveGang& live = live_.at(transition.job);
  GangJobStatus& status = live.object.status;
  const bool was_stopping = status.state == RecordState::kStopping;
  static_cast<JobFacts&>(status) = transition.facts;
  static_cast<AttemptFacts&>(status) = transition.attempt;
  to_write_.insert(transition.job);
  const std::string& text = transition.text;
  switch (transition.kind) {
    case Transition::Kind::kStarted:
      status.started_generation = live.object.generation;
      status.message = text;
      return Tell(live, "Started", text);
    case Transition::Kind::kStopping:
      return Tell(live, "Stopping", text);
    case Transition::Kind::kResizing:
      return Tell(live, "Resizing", fmt::format("{}: to {}", text, Describe(status.target)));
    case Transition::Kind::kEvicted:
      return;
    case Transition::Kind::kCancelling:
      if (!was_stopping) status.stop_reason = text;
      return;
    case Transition::Kind::kCancelled:
      status.message = text;
      return Tell(live, "Cancelled", text);
    case Transition::Kind::kEnded:
      return CommitEnd(live, transition);
  }
}

// Reservations that change are written with their jobs.
void GangRunner::Commit(const std::vector<std::pair<JobId, NamedPlacement>>& reservations,
                        const std::vector<JobId>& no_longer_backfilled) {
  const std::map<JobId, NamedPlacement> kept(reservations.begin(), reservations.end());
  for (auto& [id, live] : live_) {
    const auto at = kept.find(id);
    NamedPlacement reservation = at == kept.end() ? NamedPlacement{} : at->second;
    if (live.object.status.reservation == reservation) continue;
    live.object.status.reservation = std::move(reservation);
    to_write_.insert(id);
  }
  for (const JobId id : no_longer_backfilled) {
    live_.at(id).object.status.backfilled = false;
    to_write_.insert(id);
  }
}

void GangRunner::Start(JobId id) {
  LiveGang& live = live_.at(id);
  ApplyEstimates(live.object, *snapshot_.Find(id));
  live.workers = WorkersOf(live.object.status.placement);
  live.created = false;
  to_start_.insert(id);
}

// Its workers' pods record when it was asked, also for the next leader. Nobody reports that it has
// saved its work: asked again, it counts as if it had saved at once.
void GangRunner::Checkpoint(JobId id) {
  if (!live_.at(id).object.spec.checkpoint.on_request) return;
  snapshot_.Find(id)->last_checkpoint = Now();
  changed_ = true;  // the next checkpoint is due later
  to_checkpoint_.insert(id);
}

}  // namespace renzan::cluster::kubernetes
