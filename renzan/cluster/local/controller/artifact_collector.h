#pragma once

// Copies a job's artifacts once its processes have ended and its nodes are free again, so that
// neither a large directory nor a hanging file system occupies GPUs or is billed for them; then, if
// the job asks for it, uploads them, its run directory and the workers' output. Both together have
// a deadline. If the daemon is killed meanwhile the job stays kCollecting, and the next daemon
// copies from the start.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/inherited_files.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/transition_log.h"

namespace renzan::cluster::local {

class ArtifactCollector {
 public:
  ArtifactCollector(TimeMs timeout_ms, TransitionLog& log, Agent& agent,
                    const JobDirectories& directories, const InheritedFiles& inherited,
                    WatchedProcesses& watched, const Clock& clock)
      : timeout_ms_(timeout_ms),
        log_(log),
        agent_(agent),
        directories_(directories),
        inherited_(inherited),
        watched_(watched),
        clock_(clock) {}

  // `record` has been committed as kCollecting, with its collection.
  void Start(const JobRecord& record, const Outputs& outputs);
  // Starts again for a job of the daemon before this one. A job whose specification cannot be read
  // ends without its artifacts.
  void Recover(const JobRecord& record);
  // Ends jobs whose artifacts have been copied, or could not be.
  void Advance();
  // Stops collecting: the job ends with the artifacts copied so far.
  void Cancel(JobId job);

  // Null unless the job is kCollecting.
  const JobRecord* Find(JobId job) const;
  std::vector<const JobRecord*> Jobs() const;
  TimeMs NextDeadline() const;
  void ClockWentBack(TimeMs now);

 private:
  struct Collection {
    JobRecord record;
    Outputs outputs;
    enum class Step { kCopy, kUpload, kDone };
    Step step = Step::kCopy;
    pid_t child = 0;           // of this step
    TimeMs deadline = kNever;  // it is killed then, and what remains is not done
    std::string problems;      // problems of the steps before
    bool cancelled = false;
  };

  // Begins with the current step, or the first later one that is needed.
  void StartStep(Collection& collection);
  std::string LogOf(const Collection& collection) const;
  pid_t StartUpload(const Collection& collection);
  void CheckChild(Collection& collection);
  void AddProblem(Collection& collection, const std::string& why) const;
  void CommitEnd(const Collection& collection);

  const TimeMs timeout_ms_;
  TransitionLog& log_;
  Agent& agent_;
  const JobDirectories& directories_;
  const InheritedFiles& inherited_;
  WatchedProcesses& watched_;
  const Clock& clock_;
  std::map<JobId, Collection> collections_;
  std::vector<pid_t> killed_;  // children that have not been reaped yet
};

// For messages.
std::string WhatIsCollected(const Outputs& outputs);

}  // namespace renzan::cluster::local
