#pragma once

// Reads what running jobs report about themselves (run_status.h), and measures how long they take
// to write a checkpoint, to stop and to start, for the scheduler.

#include <map>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/cluster/contract/run_status.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class ProgressTracker {
 public:
  ProgressTracker(ClusterState& state, Store& store, Agent& agent,
                  const JobDirectories& directories, const Clock& clock)
      : state_(state), store_(store), agent_(agent), directories_(directories), clock_(clock) {}

  void AttemptStarted(JobId job);
  void StopRequested(JobId job);
  // Call it before the end is committed.
  void MeasureEnd(const LiveRecord& live, const AttemptEnd& end);
  void AttemptEnded(JobId job);
  void Remove(JobId job) { tracked_.erase(job); }

  void RequestCheckpoint(const LiveRecord& live);
  // Does nothing soon after another request, so that the job has time to write it.
  void RequestCheckpointIfDue(const LiveRecord& live);
  // Looks for the checkpoints that have been requested. Returns when to look again.
  TimeMs AwaitCheckpoints();

  // Reads the status unless it was read after `not_older_than`; nothing if there is none.
  const std::optional<RunProgress>& Read(const LiveRecord& live, TimeMs not_older_than);
  void ClockWentBack();

 private:
  struct Tracked {
    std::optional<RunProgress> progress;
    TimeMs progress_read = 0;
    TimeMs checkpoint_requested = 0;
    std::optional<TimeMs> checkpoint_awaited;  // requested then, not seen yet
    TimeMs stop_requested = 0;                 // of this attempt; 0: not by this daemon
  };

  void MeasureProgress(const LiveRecord& live);
  void Save(const LiveRecord& live, const Measured& measured);

  ClusterState& state_;
  Store& store_;
  Agent& agent_;
  const JobDirectories& directories_;
  const Clock& clock_;
  std::map<JobId, Tracked> tracked_;
};

}  // namespace renzan::cluster::local
