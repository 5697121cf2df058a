#include <algorithm>
#include <cmath>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/measured.h"

namespace renzan::cluster::local {
namespace {

constexpr int kRunMeAgain = static_cast<int>(ErrorCode::kTempFail);
// A checkpoint that was asked for is looked for so often, and for so long.
constexpr TimeMs kLookMs = 1000, kPatienceMs = 600'000;

}  // namespace

void Controller::AskForCheckpoint(LiveJob& live) {
  agent_.Checkpoint(directories_.OfAttempt(live.record.id, live.attempt->number));
  live.checkpoint_asked = Now();
  // A second request for the same one does not make it later.
  if (!live.checkpoint_awaited) live.checkpoint_awaited = live.checkpoint_asked;
}

// Looks for those that were asked for, soon, since a job may write more of its own. Returns when to
// look again.
TimeMs Controller::AwaitCheckpoints() {
  const TimeMs now = Now();
  bool awaited = false;
  for (auto& [id, live] : state_.live) {
    if (!live.checkpoint_awaited) continue;
    if (now - *live.checkpoint_awaited > kPatienceMs) {
      live.checkpoint_awaited.reset();
      continue;
    }
    ReadProgress(live, now - kLookMs);
    awaited |= live.checkpoint_awaited.has_value();
  }
  return awaited ? now + kLookMs : kNever;
}

// From what a running job says about itself.
void Controller::MeasureRunning(LiveJob& live) {
  const RunProgress& progress = *live.progress;
  Measured measured = live.measured;
  if (live.checkpoint_awaited && progress.last_checkpoint &&
      *progress.last_checkpoint >= *live.checkpoint_awaited) {
    measured.checkpoint_ms = SteadyCheckpoint(measured.checkpoint_ms,
                                              *progress.last_checkpoint - *live.checkpoint_awaited);
    live.checkpoint_awaited.reset();
  }
  if (progress.working_since && *progress.working_since >= live.attempt->started)
    measured.restart_ms = *progress.working_since - live.attempt->started;
  Remember(live, measured);
}

// What it last said about itself, and how long it took to save its work when it was asked to stop.
void Controller::MeasureStop(LiveJob& live, const AttemptEnd& end) {
  ReadProgress(live, state_.snapshot.now);
  if (end.by != EndedBy::kRequest || !live.policy.saves_on_stop) return;
  Measured measured = live.measured;
  if (end.killed_after_seconds > 0) {
    measured.killed_after_ms = static_cast<TimeMs>(std::ceil(end.killed_after_seconds * 1000));
  } else if (end.exit_code == kRunMeAgain) {
    measured.killed_after_ms.reset();
    if (live.stop_asked != 0)
      measured.checkpoint_ms = SteadyCheckpoint(
          measured.checkpoint_ms, std::max<TimeMs>(0, end.ended_ms - live.stop_asked));
  }
  Remember(live, measured);
}

// What cannot be written down serves until the daemon ends. Its owner is told when its work can no
// longer be saved in time.
void Controller::Remember(LiveJob& live, const Measured& measured) {
  if (measured == live.measured) return;
  Job& job = *state_.snapshot.Find(live.record.id);
  const std::string before = SlowCheckpointText(live.measured, job.grace_ms);
  live.measured = measured;
  ApplyMeasured(measured, job);
  const std::string slow =
      live.policy.saves_on_stop ? SlowCheckpointText(measured, job.grace_ms) : "";
  if (!slow.empty()) LogWarning("job {}: {}", live.record.id, slow);
  try {
    store_.Transact([&] {
      store_.PutMeasured(live.record.id, measured);
      if (!slow.empty() && before.empty())
        store_.AddEvent(
            {.job = live.record.id, .time = Now(), .kind = "slow_checkpoint", .text = slow});
    });
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    LogWarning("job {}: {}", live.record.id, error.what());
  }
}

}  // namespace renzan::cluster::local
