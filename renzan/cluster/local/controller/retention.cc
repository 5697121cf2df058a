#include "renzan/cluster/local/controller/retention.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan::cluster::local {
namespace {

// Bounds the transaction and the child's argument list.
constexpr int kBatch = 32;
constexpr TimeMs kMaxBetweenLooksMs = 600'000;
constexpr JobId kChildKey = 0;  // in WatchedProcesses
// Directories that are looked at in one turn, and the time until the next one.
constexpr int kLooks = 256;
constexpr TimeMs kBetweenPartsMs = 100;
// A clock that jumps this far may be wrong, and for how long it is not believed. A machine that is
// suspended every night still removes jobs.
constexpr TimeMs kDoubtfulJumpMs = 86'400'000, kDoubtfulClockMs = 86'400'000;
// Of such jobs none is removed at once: the operator may have just read of it.
constexpr TimeMs kOutputAfterStartMs = 3'600'000;

}  // namespace

void Retention::AttemptStarted(JobId job, int attempt) {
  QueueAttempt(job, attempt - options_.keep_attempts);
}

void Retention::JobRecovered(JobId job, int attempts) {
  for (int attempt = 0; attempt < attempts - options_.keep_attempts; ++attempt)
    QueueAttempt(job, attempt);
}

void Retention::QueueAttempt(JobId job, int attempt) {
  if (attempt < 0) return;
  const std::string directory = directories_.OfAttempt(job, attempt);
  if (FileExists(directory)) old_attempts_.push_back(directory);
}

void Retention::Advance(TimeMs now) {
  if (child_ != 0) {
    const std::optional<int> ended = agent_.Reap(child_);
    if (!ended) return;
    watched_.erase(kChildKey);
    child_ = 0;
    next_look_ = now;
  }
  if (!removing_.empty()) DeleteRemovedJobs();
  if (!old_attempts_.empty()) return StartRemovingAttempts();
  if (options_.keep_ended_ms == 0 && options_.keep_output_ms == 0)
    next_look_ = kNever;
  else if (now >= next_look_ && now < doubtful_until_)
    next_look_ = doubtful_until_;
  else if (now >= next_look_)
    StartRemovingJobs(now);
}

// Directories that cannot be removed are left to the next daemon.
void Retention::StartRemovingAttempts() {
  const size_t count = std::min<size_t>(old_attempts_.size(), kBatch);
  const auto end = old_attempts_.begin() + static_cast<long>(count);
  const std::vector<std::string> directories(old_attempts_.begin(), end);
  old_attempts_.erase(old_attempts_.begin(), end);
  StartChild(directories);
}

void Retention::StartRemovingJobs(TimeMs now) {
  next_look_ = now + kMaxBetweenLooksMs;
  if (options_.keep_ended_ms > 0) QueueOutdated(now);
  if (removing_.empty() && options_.keep_output_ms > 0) QueueWithOnlyOutput(now);
  std::vector<std::string> directories;
  for (const JobId job : removing_) directories.push_back(directories_.Of(job));
  if (!removing_.empty() && !StartChild(directories)) removing_.clear();
}

void Retention::QueueOutdated(TimeMs now) {
  // Jobs that cannot be removed come first in each answer and must not crowd out later ones.
  const int most = kBatch + static_cast<int>(irremovable_.size());
  for (const EndedKey& job : store_.EndedBefore(now - options_.keep_ended_ms, {}, most))
    if (!irremovable_.count(job.id)) removing_.push_back(job.id);
  next_look_ = std::min(next_look_, now + options_.keep_ended_ms);
}

// Those that have left more are not looked at again before the daemon restarts.
void Retention::QueueWithOnlyOutput(TimeMs now) {
  if (!first_look_) first_look_ = now;
  if (const TimeMs begin = *first_look_ + kOutputAfterStartMs; now < begin) {
    next_look_ = std::min(next_look_, begin);
    return;
  }
  const std::vector<EndedKey> jobs =
      store_.EndedBefore(now - options_.keep_output_ms, looked_at_, kLooks);
  for (const EndedKey& job : jobs) {
    if (removing_.size() == kBatch) break;
    looked_at_ = job;
    if (!irremovable_.count(job.id) && directories_.HasOnlyOutput(job.id))
      removing_.push_back(job.id);
  }
  next_look_ =
      std::min(next_look_, jobs.empty() ? now + options_.keep_output_ms : now + kBetweenPartsMs);
}

bool Retention::StartChild(const std::vector<std::string>& directories) {
  try {
    child_ = agent_.StartRemoving(directories);
  } catch (const Error& error) {
    LogWarning("directories of old jobs and attempts are not removed now: {}", error.what());
    return false;
  }
  watched_[kChildKey] = child_;
  next_look_ = kNever;
  return true;
}

// May run again for the same jobs when the disk was full before.
void Retention::DeleteRemovedJobs() {
  std::vector<JobId> removed;
  for (const JobId job : removing_) {
    if (!FileExists(directories_.Of(job))) {
      removed.push_back(job);
    } else if (irremovable_.insert(job).second) {
      LogWarning(
          "job {} ended long ago, but {} cannot be removed: remove it yourself; the daemon tries "
          "again when it is restarted",
          job, directories_.Of(job));
    }
  }
  if (!removed.empty()) {
    store_.Transact([&] { store_.DeleteJobs(removed); });
    LogInfo("removed {} that ended long ago (retention)", Counted(removed.size(), "job"));
  }
  removing_.clear();
}

void Retention::ClockJumped(TimeMs by, TimeMs now) {
  if (by >= kDoubtfulJumpMs) doubtful_until_ = now + kDoubtfulClockMs;
}

void Retention::ClockWentBack(TimeMs now) {
  if (child_ == 0) next_look_ = now;
  doubtful_until_ = std::min(doubtful_until_, now);
  if (first_look_) first_look_ = std::min(*first_look_, now);
}

}  // namespace renzan::cluster::local
