#pragma once

// The state of the cluster in memory, which the parts of the controller share. It follows the
// store: a change is written there first (transition_log.h). For one thread.

#include <sys/types.h>

#include <map>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/core/engine/suspicion.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

// Unix time.
TimeMs NowMs(const Clock& clock);

// The delay after an error that may go away, such as a full disk.
inline constexpr TimeMs kRetryMs = 1000;

// The record of a job that has not ended, and what belongs to it. The snapshot has a Job with the
// same id.
struct LiveRecord {
  JobRecord record;  // without specification and manifest, which are in the store
  spec::JobSpec spec;
  RetryPolicy policy;
  int64_t text_bytes = 0;  // of the specification and the manifest
  std::string unusable;    // why it cannot start with this configuration or version; empty: it can
  bool stop_unsent = false;   // it has to stop, but the request could not be written
  bool limit_unsent = false;  // likewise, that it has another time limit
  // Set if its processes were gone when the daemon started: when they were last known to run.
  std::optional<TimeMs> lost_at;
};

// Processes whose end is to be reported to the controller. JobId 0, which no job has, is the child
// that removes directories (Retention); negative ones are checks of nodes (NodeChecker).
using WatchedProcesses = std::map<JobId, pid_t>;

struct ClusterState {
  Snapshot snapshot;
  Suspicion suspicion;
  std::map<JobId, LiveRecord> live;
  // Of this machine, all of whose nodes share them. Nothing: the nodes are simulated, and each
  // numbers its own.
  std::optional<int64_t> machine_gpus;
  WatchedProcesses watched;
  bool needs_scheduling = true;  // something changed since the last scheduling cycle
  TimeMs retry_at = kNever;  // when to retry something that failed, such as a write to a full disk

  // Removes a job that has ended, and what only it used.
  void RemoveJob(JobId job);
};

}  // namespace renzan::cluster::local
