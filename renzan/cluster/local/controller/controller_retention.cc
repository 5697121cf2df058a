// A job that lives keeps its newest attempts; logs of older ones are removed by a child.
//
// Jobs that ended long ago are forgotten: first their directories go, removed by a child a few at a
// time, then what the store knows of them. A daemon that is killed in between leaves jobs that have
// ended and whose directories are gone; the next one finds them again and goes on.

#include <algorithm>

#include "renzan/base/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {
namespace {

// So that neither the transaction nor the list of the child's arguments is long.
constexpr int kAtATime = 32;
constexpr TimeMs kLongestBetweenLooksMs = 600'000;
// The child is watched like the supervisors of jobs, of which none has this number.
constexpr JobId kRemover = 0;

}  // namespace

void Controller::RemoveOldFiles() {
  if (remover_ != 0) {
    const std::optional<int> ended = agent_.Copied(remover_);
    if (!ended) return;
    state_.watched.erase(kRemover);
    remover_ = 0;
    forget_at_ = state_.snapshot.now;
  }
  if (!removing_.empty()) FinishRemoving();
  if (!old_attempts_.empty()) return StartPruning();
  if (options_.keep_ended_ms == 0)
    forget_at_ = kNever;
  else if (state_.snapshot.now >= forget_at_)
    StartRemoving();
}

void Controller::FindOldAttempts(LiveJob& live) {
  for (; live.pruned < live.record.attempts - options_.keep_attempts; ++live.pruned)
    if (const std::string directory = directories_.OfAttempt(live.record.id, live.pruned);
        FileExists(directory))
      old_attempts_.push_back(directory);
}

// What cannot be removed is left to the next daemon.
void Controller::StartPruning() {
  const size_t count = std::min<size_t>(old_attempts_.size(), kAtATime);
  const auto end = old_attempts_.begin() + static_cast<long>(count);
  const std::vector<std::string> directories(old_attempts_.begin(), end);
  old_attempts_.erase(old_attempts_.begin(), end);
  try {
    remover_ = agent_.StartRemoving(directories);
  } catch (const Error& error) {
    LogWarning("{}", error.what());
    return;
  }
  state_.watched[kRemover] = remover_;
  forget_at_ = kNever;
}

void Controller::StartRemoving() {
  // One that cannot be removed does not keep younger ones from it.
  const int most = kAtATime + static_cast<int>(irremovable_.size());
  std::vector<std::string> directories;
  for (const JobId job : store_.EndedBefore(state_.snapshot.now - options_.keep_ended_ms, most)) {
    if (irremovable_.count(job)) continue;
    removing_.push_back(job);
    directories.push_back(directories_.Of(job));
  }
  forget_at_ = state_.snapshot.now + std::min(kLongestBetweenLooksMs, options_.keep_ended_ms);
  if (removing_.empty()) return;
  try {
    remover_ = agent_.StartRemoving(directories);
  } catch (const Error& error) {
    LogWarning("{}; trying again", error.what());
    removing_.clear();
    return;
  }
  state_.watched[kRemover] = remover_;
  forget_at_ = kNever;
}

// Also when it has been tried before and the disk was full.
void Controller::FinishRemoving() {
  std::vector<JobId> gone;
  for (const JobId job : removing_) {
    if (!FileExists(directories_.Of(job))) {
      gone.push_back(job);
    } else if (irremovable_.insert(job).second) {
      LogWarning(
          "job {} ended long ago, but {} cannot be removed: remove it yourself; the next daemon "
          "looks again",
          job, directories_.Of(job));
    }
  }
  if (!gone.empty()) store_.Transact([&] { store_.DeleteJobs(gone); });
  removing_.clear();
}

}  // namespace renzan::cluster::local
