#include "renzan/cluster/simulate/simulated_cluster.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/attempts.h"
#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

// Of attempts, as jobs that Renzan trains end them.
constexpr char kStopped[] = "stopped";
constexpr int kStoppedCode = static_cast<int>(ErrorCode::kTempFail);
constexpr int kFailureCode = 1;

JobTraits TraitsOf(const WorkloadJob& job) {
  return {job.queue, job.user, job.name, job.gpus() > 0 ? job.gpus() : job.max_workers};
}

PendingJob KeyOf(const Job& job) {
  return {job.priority, job.submitted, job.id, job.request, job.min_workers, job.max_workers};
}

bool SavesInTime(const WorkloadJob& job) {
  return job.checkpoints && job.checkpoint_cost_ms <= job.grace_ms;
}

}  // namespace

SimulatedCluster::SimulatedCluster(Snapshot cluster) : snapshot_(std::move(cluster)) {
  used_.resize(snapshot_.nodes.size());
  free_.resize(snapshot_.nodes.size());
  workers_on_.resize(snapshot_.nodes.size());
  for (size_t node = 0; node < snapshot_.nodes.size(); ++node) {
    FinishNodeChange(static_cast<int>(node));
  }
}

SimulatedCluster::JobLife& SimulatedCluster::life(JobId id) {
  return const_cast<JobLife&>(static_cast<const SimulatedCluster*>(this)->life(id));
}

const SimulatedCluster::JobLife& SimulatedCluster::life(JobId id) const {
  // In most simulations ids have no gaps, so that no search is needed.
  const auto at_place = static_cast<size_t>(id - lives_.front().record.id);
  if (at_place < lives_.size() && lives_[at_place].record.id == id) return lives_[at_place];
  const auto at =
      std::lower_bound(lives_.begin(), lives_.end(), id,
                       [](const JobLife& life, JobId wanted) { return life.record.id < wanted; });
  CHECK_MSG(at != lives_.end() && at->record.id == id, "job {} does not exist", id);
  return *at;
}

std::vector<JobRecord> SimulatedCluster::records() const {
  std::vector<JobRecord> records;
  for (const JobLife& life : lives_) records.push_back(life.record);
  return records;
}

Job& SimulatedCluster::Get(JobId id) {
  Job* job = snapshot_.Find(id);
  CHECK_MSG(job != nullptr, "the policy decides on job {}, which does not exist", id);
  return *job;
}

void SimulatedCluster::SetTime(TimeMs now) {
  CHECK(now >= snapshot_.now);
  AdvanceTo(now, snapshot_);
  while (!checkpoints_due_.empty() && checkpoints_due_.begin()->first <= now) {
    const auto [due, id] = *checkpoints_due_.begin();
    JobLife& its = life(id);
    const TimeMs interval = its.job.checkpoint_interval_ms;
    const TimeMs last = due + (now - due) / interval * interval;
    Job& job = Get(id);
    job.last_checkpoint = last;
    its.saved = DoneAt(its, job, last);
    ScheduleCheckpoint(id, its, last + interval);
  }
}

void SimulatedCluster::Plan(JobId id, const WorkloadJob& job) {
  JobLife life{.job = job};
  const auto queue = std::find_if(snapshot_.queues.begin(), snapshot_.queues.end(),
                                  [&](const Queue& queue) { return queue.name == job.queue; });
  CHECK_MSG(queue != snapshot_.queues.end(), "queue {} does not exist", job.queue);
  life.record = {.id = id,
                 .queue = static_cast<int>(queue - snapshot_.queues.begin()),
                 .gpus = job.gpus(),
                 .gpus_per_worker = job.per_worker.gpu(),
                 .submitted = job.submitted};
  life.work = job.work_ms * job.max_workers;
  lives_.push_back(std::move(life));
}

TimeMs SimulatedCluster::Adopt(const Job& job, int64_t work_left) {
  const Resources per_worker = snapshot_.worker_requests[job.request].per_worker;
  JobLife its{.job = {.submitted = job.submitted,
                      .queue = snapshot_.queues[job.queue].name,
                      .per_worker = per_worker,
                      .checkpoints = job.checkpoints,
                      .restart_cost_ms = job.restart_cost_ms,
                      .checkpoint_cost_ms = job.checkpoint_cost_ms,
                      .grace_ms = job.grace_ms}};
  its.record = {.id = job.id,
                .queue = job.queue,
                .gpus = per_worker.gpu() * job.max_workers,
                .gpus_per_worker = per_worker.gpu(),
                .submitted = job.submitted};
  its.work = work_left;
  its.since = now();
  its.recorded = std::make_unique<Recorded>();
  lives_.push_back(std::move(its));
  JobLife& life = lives_.back();
  auto& [facts, attempt] = *life.recorded;
  if (job.state != JobState::kPending) BeginAttempt(job, {}, facts, attempt);
  if (job.state == JobState::kPending) {
    Enqueue(job, life);
    return kNever;
  }
  // Assumes that all its time so far was useful, and saved up to its last checkpoint.
  const int workers = NumWorkers(job.placement);
  life.record.first_start = job.started;
  life.productive_from = life.since = job.started;
  life.work += (now() - job.started) * workers;
  if (job.last_checkpoint) life.saved = (*job.last_checkpoint - job.started) * workers;
  Occupy(job, HeldBy(job), 1);
  if (job.state != JobState::kRunning) {
    StopAttempt(job, snapshot_, kStopped, facts, attempt);
    CloseRun(job, life);
    return now() + (SavesInTime(life.job) ? job.checkpoint_cost_ms : job.grace_ms);
  }
  if (job.checkpoints)
    ScheduleCheckpoint(job.id, life,
                       std::max(now(), job.last_checkpoint.value_or(job.started)) +
                           life.job.checkpoint_interval_ms);
  return EndTime(job.id);
}

void SimulatedCluster::Submit(JobId id) {
  JobLife& its = life(id);
  const WorkloadJob& from = its.job;
  Job job{.id = id,
          .request =
              snapshot_.InternRequest({.per_worker = from.per_worker, .required = from.required}),
          .queue = its.record.queue,
          .user = snapshot_.InternUser(from.user),
          .priority = from.priority,
          .min_workers = from.min_workers,
          .max_workers = from.max_workers,
          .checkpoints = from.checkpoints,
          .preemptible = from.preemptible,
          .submitted = now(),
          .grace_ms = from.grace_ms,
          .max_checkpoint_interval_ms = from.checkpoint_interval_ms,
          .waiting_since = now(),
          .restart_cost_ms = from.restart_cost_ms,
          .checkpoint_cost_ms = from.checkpoint_cost_ms};
  job.run_time = run_times_.Predict(TraitsOf(from));
  its.recorded = std::make_unique<Recorded>(Recorded{.facts = {.run_time = job.run_time}});
  CHECK(snapshot_.jobs.empty() || snapshot_.jobs.back().id < id);
  snapshot_.jobs.push_back(std::move(job));
  Enqueue(snapshot_.jobs.back(), its);
}

void SimulatedCluster::Enqueue(const Job& job, JobLife& life) {
  const PendingJob key = KeyOf(job);
  pending_.insert(std::lower_bound(pending_.begin(), pending_.end(), key), key);
  life.since = now();
}

void SimulatedCluster::Dequeue(const Job& job, JobLife& life) {
  const auto at = std::lower_bound(pending_.begin(), pending_.end(), KeyOf(job));
  CHECK(at != pending_.end() && at->job == job.id);
  pending_.erase(at);
  life.record.waited_ms += now() - life.since;
  if (life.since < now()) waits_.push_back({job.id, life.since, now(), job.max_workers});
}

TimeMs SimulatedCluster::Started(JobId id) {
  const Job& job = Get(id);
  JobLife& its = life(id);
  Dequeue(job, its);
  Occupy(job, job.placement, 1);
  if (!its.record.first_start) its.record.first_start = now();
  its.at_start = its.saved;
  // Restarting from saved work takes time; a first start is part of the work.
  its.productive_from = now() + (its.saved > 0 ? its.job.restart_cost_ms : 0);
  its.since = now();
  ++its.version;
  if (its.job.checkpoints)
    ScheduleCheckpoint(id, its, its.productive_from + its.job.checkpoint_interval_ms);
  return EndTime(id);
}

TimeMs SimulatedCluster::EndTime(JobId id) const {
  const JobLife& its = life(id);
  const Job& job = *snapshot_.Find(id);
  const int64_t workers = NumWorkers(job.placement);
  const TimeMs done = its.productive_from + (its.work - its.at_start + workers - 1) / workers;
  return std::max(now(), std::min(done, job.started + FailsAfter(its)));
}

Snapshot SimulatedCluster::SnapshotForEstimates() const {
  Snapshot snapshot = snapshot_;
  for (Job& job : snapshot.jobs) job.run_time_now = run_times_.Predict(TraitsOf(life(job.id).job));
  return snapshot;
}

TimeMs SimulatedCluster::RunTime(JobId id, int workers) const {
  const JobLife& its = life(id);
  const TimeMs done = (its.saved > 0 ? its.job.restart_cost_ms : 0) +
                      (its.work - its.saved + workers - 1) / workers;
  return std::min(done, FailsAfter(its));
}

TimeMs SimulatedCluster::FailsAfter(const JobLife& life) const {
  const auto failures = static_cast<size_t>(life.record.failures);
  return failures < life.job.fails_after.size() ? life.job.fails_after[failures] : kNever / 2;
}

TimeMs SimulatedCluster::LongestTime(JobId id) const {
  const JobLife& its = life(id);
  const auto failures = static_cast<TimeMs>(its.job.fails_after.size());
  return (1 + failures) * (its.job.restart_cost_ms + its.work) + failures * kLongestBackoffMs;
}

int64_t SimulatedCluster::DoneAt(const JobLife& life, const Job& job, TimeMs when) const {
  const TimeMs productive = std::max<TimeMs>(0, when - life.productive_from);
  return std::min(life.work, life.at_start + productive * NumWorkers(job.placement));
}

void SimulatedCluster::CloseRun(const Job& job, JobLife& life) {
  life.done = DoneAt(life, job, now());
  runs_.push_back({job.id, life.since, now(), NumWorkers(job.placement)});
  const int64_t held = (now() - life.since) * NumWorkers(job.placement);
  life.record.overhead += held - (life.done - life.at_start);
  life.since = now();
  ++life.version;
  ScheduleCheckpoint(job.id, life, kNever);
}

TimeMs SimulatedCluster::Stopped(JobId id) {
  const Job& job = Get(id);
  JobLife& its = life(id);
  const bool moves = job.state == JobState::kResizing;
  CHECK_MSG(!moves || job.checkpoints, "job {} is resized, but cannot save its work", id);
  const bool leaves =
      std::any_of(job.placement.begin(), job.placement.end(), [&](const Placed& placed) {
        return snapshot_.nodes[placed.node].state == NodeState::kDraining;
      });
  ++(leaves ? its.record.drains : moves ? its.record.resizes : its.record.preemptions);
  Occupy(job, Difference(HeldBy(job), job.placement), 1);
  CloseRun(job, its);
  // A job that does not checkpoint stops immediately; one that is too slow is killed after its
  // grace.
  const TimeMs takes =
      its.job.checkpoints ? std::min(its.job.checkpoint_cost_ms, its.job.grace_ms) : 0;
  return now() + std::max<TimeMs>(1, takes);
}

RetryPolicy SimulatedCluster::RetriesOf(JobId id) const {
  const WorkloadJob& job = life(id).job;
  return {.retries = job.retries, .saves_on_stop = job.checkpoints};
}

AttemptEnd SimulatedCluster::EndAttempt(JobId id, bool node_failed) {
  const Job& job = Get(id);
  JobLife& its = life(id);
  const bool ran = job.state == JobState::kRunning;
  if (ran) CloseRun(job, its);
  AttemptEnd end{.by = EndedBy::kRequest,
                 .exit_code = kStoppedCode,
                 .started_ms = job.started,
                 .ended_ms = now(),
                 .ran_ms = now() - job.started};
  bool saved = SavesInTime(its.job);
  if (node_failed) {
    end.by = EndedBy::kNodeFailed;
    saved = false;
    ++its.record.node_failures;
    its.keeps.clear();
  } else if (ran) {
    end.by = EndedBy::kItself;
    saved = its.done == its.work;
    end.exit_code = saved ? 0 : kFailureCode;
    CHECK_MSG(saved || end.ran_ms == FailsAfter(its), "job {} ends before its work is done", id);
    if (!saved) end.failed_on = snapshot_.nodes[job.placement[0].node].name;
    its.record.failures += !saved;
  }
  its.record.overhead += (now() - its.since) * NumWorkers(HeldBy(job));
  if (!saved) its.record.lost += its.done - its.saved;
  if (saved) its.saved = its.done;
  ++its.version;
  Occupy(job, HeldBy(job), -1);
  if (its.keeps.empty()) return end;
  Occupy(job, its.keeps, 1);
  held_[id] = std::exchange(its.keeps, {});
  its.held_since = now();
  return end;
}

void SimulatedCluster::Enqueue(JobId id) { Enqueue(Get(id), life(id)); }

void SimulatedCluster::Remove(JobId id) {
  Job& job = Get(id);
  JobLife& its = life(id);
  its.record.failed = its.recorded->facts.state == RecordState::kFailed;
  (its.record.failed ? its.record.lost : its.record.useful) += its.saved;
  its.record.end = now();
  its.recorded.reset();
  run_times_.Add(TraitsOf(its.job), job.attained_worker_ms / job.max_workers);
  snapshot_.jobs.erase(snapshot_.jobs.begin() + (&job - snapshot_.jobs.data()));
}

void SimulatedCluster::Checkpoint(JobId id) {
  Job& job = Get(id);
  JobLife& its = life(id);
  if (!job.checkpoints || job.state != JobState::kRunning) return;
  if (now() < its.productive_from) return;
  its.saved = DoneAt(its, job, now());
  job.last_checkpoint = now();
  ScheduleCheckpoint(id, its, now() + its.job.checkpoint_interval_ms);
}

void SimulatedCluster::ScheduleCheckpoint(JobId id, JobLife& life, TimeMs when) {
  if (life.next_checkpoint != kNever) checkpoints_due_.erase({life.next_checkpoint, id});
  life.next_checkpoint = when;
  if (when != kNever) checkpoints_due_.insert({when, id});
}

}  // namespace renzan::cluster::simulate
