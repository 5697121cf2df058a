#pragma once

// The worker processes of an attempt: starts, reaps, signals and cleans them up. The process that
// uses it must be single-threaded until Start() returns, have no other children, and adopt orphans
// (PR_SET_CHILD_SUBREAPER).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt_cgroups.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/gang_state.h"
#include "renzan/cluster/local/supervisor/log_pump.h"
#include "renzan/cluster/local/supervisor/worker_process.h"

namespace renzan::cluster::local {

class Gang {
 public:
  // References must outlive this object.
  Gang(const AttemptPaths& paths, const AttemptPlan& plan);

  // Creates the job's directories and starts all workers. If that fails, kills the workers that
  // were started and returns the reason.
  std::optional<StartFailure> Start();
  const std::vector<pid_t>& pids() const { return pids_; }

  // Workers that have ended since the last call. Reaps orphans too.
  std::vector<GangState::Exit> Reap();

  // SIGKILL reaches the worker's whole process group, other signals the worker itself. The worker
  // must not have been reaped.
  void Send(const GangState::Signal& signal) const;
  // SIGUSR1, unless the worker does not handle it and would be killed.
  void RequestCheckpoint(int rank) const;

  // After all workers have been reaped: kills all processes that they left behind, and removes
  // their control groups. After that the logs are complete.
  void KillLeftovers();

  // After KillLeftovers(): output that could not be written, and AttemptCgroups::OutOfMemory().
  int64_t lost_output_bytes() const { return logs_.dropped_bytes(); }
  const std::string& out_of_memory() const { return out_of_memory_; }

 private:
  std::optional<StartFailure> StartAll();

  const AttemptPaths& paths_;
  const AttemptPlan& plan_;
  AttemptCgroups cgroups_;
  std::string out_of_memory_;
  LogPump logs_;
  std::vector<pid_t> pids_;  // by rank
};

}  // namespace renzan::cluster::local
