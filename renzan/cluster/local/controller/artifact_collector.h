#pragma once

// Copies a job's artifacts once its processes have ended and its nodes are free again, so that
// neither a large directory nor a hanging file system occupies GPUs or is billed for them. Copying
// has a deadline. If the daemon is killed meanwhile the job stays kCollecting, and the next daemon
// copies from the start.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/transition_log.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class ArtifactCollector {
 public:
  ArtifactCollector(TimeMs timeout_ms, TransitionLog& log, Store& store, Agent& agent,
                    const JobDirectories& directories, WatchedProcesses& watched,
                    const Clock& clock)
      : timeout_ms_(timeout_ms),
        log_(log),
        store_(store),
        agent_(agent),
        directories_(directories),
        watched_(watched),
        clock_(clock) {}

  // `record` has been committed as kCollecting, together with `outcome`. Copies `from`.
  void Start(const JobRecord& record, const CollectionRecord& outcome, const std::string& from);
  // Starts again for a job of the daemon before this one. A job whose specification cannot be read
  // ends without its artifacts.
  void Recover(const JobRecord& record);
  // Ends jobs whose artifacts have been copied, or could not be.
  void Advance();
  // The job then ends with the artifacts it has.
  void Cancel(JobId job);

  // Null unless the job is kCollecting.
  const JobRecord* Find(JobId job) const;
  std::vector<const JobRecord*> Jobs() const;
  TimeMs NextDeadline() const;
  void ClockWentBack(TimeMs now);

 private:
  struct Collection {
    JobRecord record;
    CollectionRecord outcome;
    std::string from;
    pid_t child = 0;                     // 0: not started, or has ended
    TimeMs deadline = kNever;            // the child is killed then
    std::optional<std::string> problem;  // set once copying has ended; "" if it succeeded
  };

  void CheckChild(Collection& collection);
  void CommitEnd(const Collection& collection);

  const TimeMs timeout_ms_;
  TransitionLog& log_;
  Store& store_;
  Agent& agent_;
  const JobDirectories& directories_;
  WatchedProcesses& watched_;
  const Clock& clock_;
  std::map<JobId, Collection> collections_;
  std::vector<pid_t> killed_;  // children that have not been reaped yet
};

}  // namespace renzan::cluster::local
