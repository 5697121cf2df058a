#include "renzan/cluster/kubernetes/controller/gang_runner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/engine/lifecycle.h"
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
      clock_(clock) {}

LiveJob* GangRunner::FindByUid(const std::string& uid) {
  const auto at = by_uid_.find(uid);
  return at == by_uid_.end() ? nullptr : &live_.at(at->second);
}

// --- Jobs that come and go.

void GangRunner::Add(GangJob object, Job job) {
  const JobId id = job.id;
  const GangJobStatus& status = object.status;
  Restore(object, inventory_, Now(), snapshot_, job);
  LiveJob live{.policy = spec::RetryPolicyOf(object.spec)};
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
  LiveJob& adopted = live_.at(id);
  if (const std::string node = LostNodeOf(adopted, job); !node.empty()) EndWithNode(adopted, node);
  Check(id);
}

std::string GangRunner::LostNodeOf(const LiveJob& live, const Job& job) const {
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
  LiveJob& live = live_.at(id);
  Job& job = *snapshot_.Find(id);
  live.object.cancelled = true;
  GangJobStatus& status = live.object.status;
  if (job.state == JobState::kPending) {
    status.state = RecordState::kCancelled;
    status.ended = Now();
    job.held = "it has ended";
    status.message = why;
    to_write_.insert(id);
    Tell(live, "Cancelled", why);
    return;
  }
  if (job.state == JobState::kRunning || job.state == JobState::kResizing) {
    EvictGang(job);
    RecordStop(job, live, why);
  }
  StopWorkers(live);
}

void GangRunner::ObjectDeleted(JobId id) {
  LiveJob& live = live_.at(id);
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

void GangRunner::RequestStop(JobId id, const std::string& why) {
  cluster::CarryOut(Stop{.job = id, .reason = StopReason::kRequested, .requested_by = why},
                    snapshot_, *this);
}

void GangRunner::TellWait(JobId id, const std::string& reason, const std::string& message) {
  LiveJob& live = live_.at(id);
  GangJobStatus& status = live.object.status;
  live.wait_told_at = Now();
  if (status.reason == reason && status.message == message) return;
  status.reason = reason;
  status.message = message;
  to_write_.insert(id);
}

// --- Decisions.

void GangRunner::CarryOut(const Decisions& decisions) {
  cluster::CarryOut(decisions, snapshot_, *this);
  // A started job must be looked at earlier than one that waits.
  changed_ |= !decisions.starts.empty() || !decisions.stops.empty() || !decisions.resizes.empty();
}

void GangRunner::Commit(const Start&) { snapshot_.now = Now(); }
void GangRunner::Commit(const Stop&) {}
void GangRunner::Commit(const Resize&) {}

// Reservations that change are written with their jobs.
void GangRunner::Commit(const std::vector<Reservation>& reservations) {
  std::map<JobId, NamedPlacement> kept;
  for (const Reservation& each : reservations)
    kept[each.job] = WithNames(snapshot_, each.placement);
  for (auto& [id, live] : live_) {
    const auto at = kept.find(id);
    NamedPlacement reservation = at == kept.end() ? NamedPlacement{} : at->second;
    if (live.object.status.reservation == reservation) continue;
    live.object.status.reservation = std::move(reservation);
    to_write_.insert(id);
  }
  for (const JobId id : NoLongerBackfilled(reservations, snapshot_)) {
    live_.at(id).object.status.backfilled = false;
    to_write_.insert(id);
  }
}

void GangRunner::Perform(const Start& start) {
  LiveJob& live = live_.at(start.job);
  const Job& job = *snapshot_.Find(start.job);
  GangJobStatus& status = live.object.status;
  BeginAttempt(job, WithNames(snapshot_, job.placement), status, status);
  status.started_generation = live.object.generation;
  ApplyEstimates(live.object, *snapshot_.Find(start.job));
  status.message = fmt::format("attempt {} on {}", status.attempts - 1, Describe(status.placement));
  to_write_.insert(start.job);
  Tell(live, "Started", status.message);
  live.workers = WorkersOf(status.placement);
  live.created = false;
  to_start_.insert(start.job);
}

void GangRunner::Perform(const Stop& stop) {
  LiveJob& live = live_.at(stop.job);
  RecordStop(*snapshot_.Find(stop.job), live, TextOf(stop));
  Tell(live, "Stopping", live.object.status.stop_reason);
  StopWorkers(live);
}

void GangRunner::Perform(const Resize& resize) {
  LiveJob& live = live_.at(resize.job);
  GangJobStatus& status = live.object.status;
  RecordStop(*snapshot_.Find(resize.job), live, TextOf(resize, snapshot_));
  Tell(live, "Resizing", fmt::format("{}: to {}", status.stop_reason, Describe(status.target)));
  StopWorkers(live);
}

// Its workers' pods record when it was asked, also for the next leader. Nobody reports that it has
// saved its work: asked again, it counts as if it had saved at once.
void GangRunner::Perform(const CheckpointRequest& request) {
  if (!live_.at(request.job).object.spec.checkpoint.on_request) return;
  snapshot_.Find(request.job)->last_checkpoint = Now();
  changed_ = true;  // the next checkpoint is due later
  to_checkpoint_.insert(request.job);
}

void GangRunner::RecordStop(const Job& job, LiveJob& live, const std::string& why) {
  StopAttempt(job, snapshot_, why, live.object.status, live.object.status);
  to_write_.insert(job.id);
}

}  // namespace renzan::cluster::kubernetes
