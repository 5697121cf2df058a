#pragma once

// Garbage-collects the files of jobs. Of a job that has not ended the newest attempt directories
// are kept. A job that ended long ago is deleted, earlier if it has left only its output: first its
// directory, by a child process, then its records in the store. If the daemon is killed in between,
// the next one finds the job without its directory and deletes the records.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

struct RetentionOptions {
  TimeMs keep_ended_ms = 0;   // 0: for ever
  TimeMs keep_output_ms = 0;  // likewise; of a job that has left nothing else
  int keep_attempts = 10;     // directories with logs, of a job that has not ended
};

class Retention {
 public:
  Retention(const RetentionOptions& options, Store& store, Agent& agent,
            const JobDirectories& directories, WatchedProcesses& watched)
      : options_(options),
        store_(store),
        agent_(agent),
        directories_(directories),
        watched_(watched) {}

  // Queue directories of old attempts for removal.
  void AttemptStarted(JobId job, int attempt);
  void JobRecovered(JobId job, int attempts);
  // Removes some of what is due. One child runs at a time.
  void Advance(TimeMs now);
  // When to look for jobs to delete.
  TimeMs next_look() const { return next_look_; }
  void ClockWentBack(TimeMs now);
  // A clock that was set forward may be wrong, and what is deleted is gone.
  void ClockJumped(TimeMs by, TimeMs now);

 private:
  void QueueAttempt(JobId job, int attempt);
  void StartRemovingAttempts();
  void StartRemovingJobs(TimeMs now);
  void QueueOutdated(TimeMs now);
  void QueueWithOnlyOutput(TimeMs now);
  void DeleteRemovedJobs();
  bool StartChild(const std::vector<std::string>& directories);

  const RetentionOptions options_;
  Store& store_;
  Agent& agent_;
  const JobDirectories& directories_;
  WatchedProcesses& watched_;
  pid_t child_ = 0;                        // removes directories; 0: none
  std::vector<std::string> old_attempts_;  // directories to remove
  std::vector<JobId> removing_;            // jobs whose directories the child removes
  std::set<JobId> irremovable_;            // not tried again before the daemon restarts
  std::optional<TimeMs> first_look_;
  // Of those that ended so long ago that only their output would not keep them: looked at so far.
  EndedKey looked_at_;
  TimeMs next_look_ = 0;
  TimeMs doubtful_until_ = 0;  // the clock; until then nothing is removed because of its age
};

}  // namespace renzan::cluster::local
