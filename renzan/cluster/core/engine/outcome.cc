#include "renzan/cluster/core/engine/outcome.h"

#include <fmt/format.h>

#include "renzan/base/backoff.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

Outcome Retry(const RunHistory& job, const AttemptEnd& end, const RetryPolicy& policy) {
  if (job.failures >= policy.retries) {
    return {.state = RecordState::kFailed,
            .failure = true,
            .text = policy.retries == 0
                        ? fmt::format("failed: {}", end.message)
                        : fmt::format("failed {}, no retries left: {}",
                                      Counted(job.failures + 1, "time"), end.message)};
  }
  const TimeMs pause = Backoff(policy.backoff_ms, job.failures);
  return {.backoff_ms = pause,
          .failure = true,
          .text = fmt::format("failed: {}; attempt {} of {} in {} s", end.message, job.failures + 2,
                              policy.retries + 1, static_cast<double>(pause) / 1000)};
}

Outcome Requeue(const RunHistory& job, const RetryPolicy& policy, const std::string& why) {
  const TimeMs pause = Backoff(policy.backoff_ms, job.requeues);
  return {.backoff_ms = pause,
          .requeue = true,
          .text = fmt::format("{}; next attempt in {} s", why, static_cast<double>(pause) / 1000)};
}

std::string TextOfStop(const RunHistory& job, const AttemptEnd& end, const RetryPolicy& policy) {
  std::string text = fmt::format("back to the queue ({})", job.stop_reason);
  if (end.exit_code == 0 && end.by == EndedBy::kRequest)
    text +=
        "; exit status 0 after SIGTERM does not mean that the job is done, unless it declares "
        "checkpoint.on_stop";
  if (end.killed_after_seconds > 0 && policy.saves_on_stop)
    text += fmt::format(
        "; it was killed {:.6g} s after SIGTERM: the work since its last checkpoint is lost",
        end.killed_after_seconds);
  return text;
}

}  // namespace

TimeMs Backoff(TimeMs base, int times) {
  return static_cast<TimeMs>(
      renzan::Backoff(static_cast<double>(base), times, static_cast<double>(kLongestBackoffMs)));
}

int Severity(int exit_code) {
  if (exit_code > 128) return 3;
  if (exit_code == static_cast<int>(ErrorCode::kTempFail)) return 0;
  return exit_code == static_cast<int>(ErrorCode::kUnavailable) ? 1 : 2;
}

Outcome OutcomeOf(const RunHistory& job, const AttemptEnd& end, const RetryPolicy& policy) {
  if (job.cancel_requested) return {.state = RecordState::kCancelled, .text = "cancelled"};
  if (!HasRun(end.by)) return Requeue(job, policy, end.message);
  const bool stopped = !job.stop_reason.empty();
  // A job that was asked to stop may have ended by itself before SIGTERM arrived.
  const bool done = end.exit_code == 0 && (end.by == EndedBy::kItself ||
                                           (end.by == EndedBy::kRequest && policy.saves_on_stop));
  if (done) return {.state = RecordState::kDone, .text = "done"};

  const TimeMs ran = job.run_ms + end.ran_ms;
  if (end.by == EndedBy::kTimeout || (policy.timeout_ms > 0 && ran >= policy.timeout_ms))
    return {.state = RecordState::kTimeout,
            .text = fmt::format("stopped after its timeout of {} s",
                                static_cast<double>(policy.timeout_ms) / 1000)};
  if (end.by == EndedBy::kNodeFailed)
    return {.text = fmt::format("back to the queue: {}", end.message)};
  if (stopped && job.state == RecordState::kResizing)
    return {.state = RecordState::kResizing,
            .text = "stopped; it starts again with its new placement"};
  if (stopped) return {.text = TextOfStop(job, end, policy)};
  if (end.by == EndedBy::kRequest && end.exit_code == 0)
    return Requeue(job, policy, "its supervisor was terminated");
  if (end.exit_code == static_cast<int>(ErrorCode::kTempFail))
    return Requeue(job, policy, "it requested another run (exit status 75)");
  return Retry(job, end, policy);
}

std::string FailedEarlyOn(const AttemptEnd& end, const Outcome& outcome, TimeMs early_ms) {
  const bool failed = outcome.failure || end.by == EndedBy::kNeverStarted;
  return failed && end.ran_ms < early_ms ? end.failed_on : "";
}

}  // namespace renzan::cluster
