#include "renzan/cluster/local/controller/progress_tracker.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/attempts.h"
#include "renzan/cluster/local/controller/measured.h"
#include "renzan/cluster/local/untrusted_file.h"

namespace renzan::cluster::local {
namespace {

constexpr int kRunMeAgain = static_cast<int>(ErrorCode::kTempFail);
// How often, and for how long, to look for a checkpoint that was requested.
constexpr TimeMs kLookMs = 1000, kPatienceMs = 600'000;
// A job that was asked for a checkpoint gets this long to write it.
constexpr TimeMs kBetweenCheckpointRequestsMs = 30'000;

}  // namespace

void ProgressTracker::AttemptStarted(JobId job) { tracked_[job] = {}; }

void ProgressTracker::StopRequested(JobId job) {
  Tracked& tracked = tracked_[job];
  if (tracked.stop_requested == 0) tracked.stop_requested = NowMs(clock_);
}

void ProgressTracker::AttemptEnded(JobId job) { tracked_[job].checkpoint_awaited.reset(); }

void ProgressTracker::RequestCheckpoint(const LiveRecord& live) {
  agent_.Checkpoint(directories_.OfAttempt(live.record.id, live.record.attempt->number));
  Tracked& tracked = tracked_[live.record.id];
  tracked.checkpoint_requested = NowMs(clock_);
  // The time counts from the first request that has not been answered.
  if (!tracked.checkpoint_awaited) tracked.checkpoint_awaited = tracked.checkpoint_requested;
}

void ProgressTracker::RequestCheckpointIfDue(const LiveRecord& live) {
  const TimeMs last = tracked_[live.record.id].checkpoint_requested;
  if (live.record.attempt && last + kBetweenCheckpointRequestsMs <= state_.snapshot.now)
    RequestCheckpoint(live);
}

// Soon after the request: otherwise a later checkpoint, which the job writes by itself, might be
// taken for the one that was requested.
TimeMs ProgressTracker::AwaitCheckpoints() {
  const TimeMs now = NowMs(clock_);
  bool awaited = false;
  for (auto& [id, tracked] : tracked_) {
    if (!tracked.checkpoint_awaited) continue;
    if (now - *tracked.checkpoint_awaited > kPatienceMs) {
      tracked.checkpoint_awaited.reset();
      continue;
    }
    Read(state_.live.at(id), now - kLookMs);
    awaited |= tracked.checkpoint_awaited.has_value();
  }
  return awaited ? now + kLookMs : kNever;
}

const std::optional<RunProgress>& ProgressTracker::Read(const LiveRecord& live,
                                                        TimeMs not_older_than) {
  const JobId id = live.record.id;
  Tracked& tracked = tracked_[id];
  if (!live.record.attempt || tracked.progress_read > not_older_than) return tracked.progress;
  const TimeMs now = tracked.progress_read = NowMs(clock_);
  const auto text = ReadUntrusted(directories_.root(), fmt::format("{}/run/status.json", id),
                                  live.record.uid, kMaxStatusBytes);
  tracked.progress = text ? ParseRunStatus(*text, now) : std::nullopt;
  std::optional<RunProgress>& progress = tracked.progress;
  // An earlier attempt may have written it.
  if (progress && progress->updated < live.record.attempt->started) progress->eta_seconds.reset();

  Job* job = state_.snapshot.Find(id);
  job->expected_end.reset();
  if (live.policy.timeout_ms > 0)
    job->expected_end =
        job->started + std::max<TimeMs>(0, live.policy.timeout_ms - live.record.run_ms);
  if (!progress) return progress;
  if (progress->eta_seconds)
    job->expected_end =
        std::min(job->expected_end.value_or(kNever),
                 progress->updated + static_cast<TimeMs>(*progress->eta_seconds * 1000));
  job->last_checkpoint.reset();
  if (progress->last_checkpoint && *progress->last_checkpoint >= live.record.attempt->started)
    job->last_checkpoint = progress->last_checkpoint;
  MeasureProgress(live);
  return progress;
}

void ProgressTracker::MeasureProgress(const LiveRecord& live) {
  Tracked& tracked = tracked_[live.record.id];
  const RunProgress& progress = *tracked.progress;
  Measured measured = live.record.measured;
  if (tracked.checkpoint_awaited && progress.last_checkpoint &&
      *progress.last_checkpoint >= *tracked.checkpoint_awaited) {
    measured.checkpoint_ms = SteadyCheckpointCost(
        measured.checkpoint_ms, *progress.last_checkpoint - *tracked.checkpoint_awaited);
    tracked.checkpoint_awaited.reset();
  }
  if (progress.working_since && *progress.working_since >= live.record.attempt->started)
    measured.restart_ms = *progress.working_since - live.record.attempt->started;
  Save(live, measured);
}

// The last status it wrote, and how long it took to save its work after a request to stop.
void ProgressTracker::MeasureEnd(const LiveRecord& live, const AttemptEnd& end) {
  Read(live, state_.snapshot.now);
  if (end.by != EndedBy::kRequest || !live.policy.saves_on_stop) return;
  const Tracked& tracked = tracked_[live.record.id];
  Measured measured = live.record.measured;
  if (end.killed_after_seconds > 0) {
    measured.killed_after_ms = static_cast<TimeMs>(std::ceil(end.killed_after_seconds * 1000));
  } else if (end.exit_code == kRunMeAgain) {
    measured.killed_after_ms.reset();
    if (tracked.stop_requested != 0)
      measured.checkpoint_ms = SteadyCheckpointCost(
          measured.checkpoint_ms, std::max<TimeMs>(0, end.ended_ms - tracked.stop_requested));
  }
  Save(live, measured);
}

// Takes effect even if it cannot be stored. Warns the owner once the job can no longer save its
// work within its grace.
void ProgressTracker::Save(const LiveRecord& live, const Measured& measured) {
  JobRecord& record = state_.live.at(live.record.id).record;
  if (measured == record.measured) return;
  Job& job = *state_.snapshot.Find(live.record.id);
  const std::string before = SlowCheckpointText(record.measured, job.grace_ms);
  record.measured = measured;
  ApplyMeasured(measured, job);
  const std::string slow =
      live.policy.saves_on_stop ? SlowCheckpointText(measured, job.grace_ms) : "";
  if (!slow.empty()) LogWarning("job {}: {}", live.record.id, slow);
  try {
    std::optional<EventRecord> event;
    if (!slow.empty() && before.empty())
      event = {.time = NowMs(clock_), .kind = "slow_checkpoint", .text = slow};
    store_.Transact([&] { store_.Put(record, event); });
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    LogWarning("job {}: {}", live.record.id, error.what());
  }
}

void ProgressTracker::ClockWentBack() {
  for (auto& [id, tracked] : tracked_) {
    tracked.progress_read = tracked.checkpoint_requested = tracked.stop_requested = 0;
    tracked.checkpoint_awaited.reset();
  }
}

}  // namespace renzan::cluster::local
