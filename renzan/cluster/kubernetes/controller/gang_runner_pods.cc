// Reacts to what happens to the pods of gangs.

#include <algorithm>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/gang_runner.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"

namespace renzan::cluster::kubernetes {
namespace {

// Missing pods of a gang that was taken over are ignored before this.
constexpr TimeMs kSettleMs = 5 * kSecond;

// By an eviction, or by hand. A pod that is seen only when it is gone may have ended before.
bool IsBeingDeleted(const Worker& worker) {
  if (!worker.pod || !worker.pod->deleting || worker.told_to_stop || worker.ended_by_itself)
    return false;
  const auto &told = worker.pod->told_at, &finished = worker.pod->finished;
  return !worker.gone || (told && finished && finished >= told);
}

}  // namespace

bool GangRunner::IsWorker(const Pod& pod) const {
  const auto at = by_uid_.find(pod.job_uid);
  if (at == by_uid_.end()) return false;
  const LiveGang& live = live_.at(at->second);
  if (pod.ns != live.object.ns || pod.attempt != live.object.status.attempts - 1 || pod.rank < 0 ||
      pod.rank >= static_cast<int>(live.workers.size()))
    return false;
  const std::string& node = live.workers[pod.rank].node;
  return pod.name == PodName(live.object.name, pod.attempt, pod.rank) &&
         (pod.node.empty() || pod.node == node);
}

void GangRunner::Check(JobId id) {
  const auto at = live_.find(id);
  if (at == live_.end() || at->second.workers.empty()) return;
  LiveGang& live = at->second;
  std::vector<bool> exists(live.workers.size());
  const auto see = [&](const Pod& pod, bool there) {
    if (!IsWorker(pod)) return;
    Worker& worker = live.workers[pod.rank];
    exists[pod.rank] = exists[pod.rank] || there;
    worker.pod = pod;
    worker.bound |= !pod.node.empty();
    worker.ended_by_itself |= pod.ended_by_itself;
  };
  for (const Pod& pod : pods_.TakeRemoved(live.object.uid)) see(pod, false);
  for (const Pod* pod : pods_.OfJob(live.object.uid)) see(*pod, true);
  for (const Worker& worker : live.workers)
    if (live.object.spec.checkpoint.on_request && worker.pod && worker.pod->checkpoint_asked) {
      auto& last = snapshot_.Find(id)->last_checkpoint;
      last = std::max(last.value_or(0), *worker.pod->checkpoint_asked);
    }
  const bool starting = to_start_.contains(id);
  if (!starting && !live.created)
    // Created by an earlier leader.
    live.created = std::all_of(live.workers.begin(), live.workers.end(), [](const Worker& worker) {
      return worker.pod && (worker.bound || worker.pod->ended);
    });
  if (starting) return;
  // The leader that wrote that it is to stop may not have told it.
  if (snapshot_.Find(id)->state != JobState::kRunning) StopWorkers(live);
  if (!live.created && Now() < live.adopted_at + kSettleMs) return;
  for (size_t rank = 0; rank < live.workers.size(); ++rank)
    if (!exists[rank]) live.workers[rank].gone = true;
  if (!live.created && !live.ended_by && snapshot_.Find(id)->state == JobState::kRunning) {
    End(live, EndedBy::kNeverStarted,
        live.end_message.empty() ? "its pods were not all created and bound" : live.end_message);
  }
  // While it runs, somebody else deletes its pods, and other workers may have failed because of
  // that. Afterwards we delete them, perhaps because one has failed.
  const bool by_others = snapshot_.Find(id)->state == JobState::kRunning;
  if (by_others) SeeDeleted(live);
  SeeFailed(live);
  if (!by_others) SeeDeleted(live);
  SeeStart(live);
  if (std::all_of(live.workers.begin(), live.workers.end(),
                  [](const Worker& worker) { return worker.ended(); }))
    Finish(live);
}

void GangRunner::SeeDeleted(LiveGang& live) {
  for (size_t rank = 0; rank < live.workers.size() && !live.ended_by; ++rank) {
    const Worker& worker = live.workers[rank];
    const std::string name =
        PodName(live.object.name, live.object.status.attempts - 1, static_cast<int>(rank));
    if (IsBeingDeleted(worker))
      // The others are told to save their work as well.
      End(live, EndedBy::kRequest, fmt::format("pod {} is being deleted", name));
    else if (worker.gone && !(worker.pod && worker.pod->ended))
      End(live, EndedBy::kNodeFailed, fmt::format("pod {} was deleted", name));
  }
}

void GangRunner::SeeFailed(LiveGang& live) {
  const Worker* worker = live.ended_by ? nullptr : FirstFailed(live.workers);
  if (!worker) return;
  const Pod& pod = *worker->pod;
  live.first_exit_code = pod.exit_code;
  End(live,
      !pod.refused  ? EndedBy::kWorkerFailed
      : pod.started ? EndedBy::kNodeFailed
                    : EndedBy::kNeverStarted,
      fmt::format("worker {} on {} exited with {}{}", pod.rank, worker->node, pod.exit_code,
                  pod.reason.empty() ? "" : " (" + pod.reason + ")"));
}

// Tells the user once for each attempt why a worker cannot start.
void GangRunner::SeeStart(LiveGang& live) {
  if (live.started || live.ended_by) return;
  live.started = true;
  for (size_t rank = 0; rank < live.workers.size(); ++rank) {
    const Worker& worker = live.workers[rank];
    if (worker.pod && (worker.pod->running || worker.pod->ended)) continue;
    live.started = false;
    if (!worker.pod || !worker.pod->cannot_start || !live.start_trouble.empty()) continue;
    live.start_trouble = fmt::format("worker {} on {}: {}", rank, worker.node, worker.pod->waiting);
    live.object.status.message += "; " + live.start_trouble;
    to_write_.insert(live.object.status.id);
    Tell(live, "CannotStart", live.start_trouble, true);
  }
}

// Others can use its room; a retry may find another node, or what was missing.
void GangRunner::EndUnstarted(LiveGang& live) {
  std::string why = live.start_trouble;
  for (size_t rank = 0; rank < live.workers.size() && why.empty(); ++rank)
    if (const Worker& worker = live.workers[rank];
        worker.pod && !worker.pod->running && !worker.pod->ended)
      why = fmt::format(
          "worker {} on {}: {}; `kubectl describe pod {}` says more while it exists", rank,
          worker.node, worker.pod->waiting.empty() ? "nothing is known of it" : worker.pod->waiting,
          worker.pod->name);
  live.never_started = true;
  End(live, EndedBy::kWorkerFailed,
      fmt::format("not all workers started within {} s: {}",
                  static_cast<double>(live.object.start_timeout_ms) / 1000, why));
}

// The attempt is over, whether the scheduler wants that or not.
void GangRunner::End(LiveGang& live, EndedBy by, const std::string& message) {
  changed_ = true;
  const JobId id = live.object.status.id;
  const Job& job = *snapshot_.Find(id);
  // Workers of a gang that was asked to stop end with the status that says so.
  const bool asked = job.state != JobState::kRunning && by == EndedBy::kWorkerFailed;
  live.ended_by = asked ? EndedBy::kRequest : by;
  live.end_message = message;
  // Tells a leader that reads the job again that its program has not failed.
  const bool not_its_own =
      by == EndedBy::kRequest || by == EndedBy::kNodeFailed || by == EndedBy::kNeverStarted;
  if (job.state == JobState::kRunning)
    lifecycle_.Evict(id, not_its_own ? message : live.object.status.stop_reason);
  StopWorkers(live);
}

void GangRunner::StopWorkers(LiveGang& live) {
  for (Worker& worker : live.workers) {
    if (worker.told_to_stop || worker.ended() || !worker.pod) continue;
    const int node = inventory_.Find(worker.node);
    const bool lost = node < 0 || snapshot_.nodes[node].state == NodeState::kGone;
    to_delete_.push_back({live.object.status.id, worker.pod->ns, worker.pod->name, worker.pod->uid,
                          // Nobody is there to confirm that it has ended.
                          lost ? std::optional<int64_t>(0) : std::nullopt});
    worker.told_to_stop = true;
  }
}

void GangRunner::DeleteOrphan(const Pod& pod) {
  to_delete_.push_back({0, pod.ns, pod.name, pod.uid, std::nullopt});
}

void GangRunner::NodeLost(int node) {
  std::vector<JobId> on_it;
  for (const Job& job : snapshot_.jobs)
    if (IsOn(job.placement, node)) on_it.push_back(job.id);
  for (const JobId id : on_it) EndWithNode(live_.at(id), snapshot_.nodes[node].name);
}

void GangRunner::EndWithNode(LiveGang& live, const std::string& node) {
  // Workers that were told to stop already will not confirm it.
  for (Worker& worker : live.workers)
    if (worker.node == node) worker.told_to_stop = false;
  live.ended_by.reset();
  End(live, EndedBy::kNodeFailed, fmt::format("node {} failed", node));
}

TimeMs GangRunner::CheckTimeouts() {
  TimeMs next = kNever;
  std::vector<JobId> settled;
  for (auto& [id, live] : live_) {
    // Also a job that is being ended: if no pod was ever created, none will report its end.
    if (!live.workers.empty() && !live.created && !to_start_.contains(id)) {
      if (const TimeMs at = live.adopted_at + kSettleMs; at <= Now())
        settled.push_back(id);
      else
        next = std::min(next, at);
    }
    const Job& job = *snapshot_.Find(id);
    if (const TimeMs limit = live.object.start_timeout_ms; limit > 0 && live.created &&
                                                           !live.started && !live.ended_by &&
                                                           job.state == JobState::kRunning) {
      if (const TimeMs at = job.started + limit; at <= Now())
        EndUnstarted(live);
      else
        next = std::min(next, at);
    }
    if (live.policy.timeout_ms == 0 || job.state == JobState::kPending || live.ended_by) continue;
    const TimeMs at = job.started + live.policy.timeout_ms - live.object.status.run_ms;
    if (at <= Now())
      End(live, EndedBy::kTimeout, "its timeout has passed");
    else
      next = std::min(next, at);
  }
  for (const JobId id : settled) Check(id);
  return next;
}

}  // namespace renzan::cluster::kubernetes
