#pragma once

// The processes of an attempt, as the supervisor has them: starts them, reaps them, signals them,
// and leaves none behind. For a process with one thread until Start() has returned, whose only
// children are these, and which adopts orphans (PR_SET_CHILD_SUBREAPER).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/gang_state.h"
#include "renzan/cluster/local/supervisor/log_pump.h"
#include "renzan/cluster/local/supervisor/worker_process.h"

namespace renzan::cluster::local {

class Gang {
 public:
  // References must outlive this object.
  Gang(const AttemptPaths& paths, const AttemptPlan& plan);

  // Makes the job's directories and starts all workers, or says why that cannot be; those that have
  // been started are then killed.
  std::optional<StartFailure> Start();
  const std::vector<pid_t>& pids() const { return pids_; }

  // Workers that have ended since the last call. Orphans are buried silently.
  std::vector<GangState::Exit> Reap();

  // SIGKILL reaches the worker's whole process group, other signals the worker itself. The worker
  // must not have been reaped.
  void Send(const GangState::Signal& signal) const;
  // SIGUSR1; a worker that it would end does not get it.
  void AskForCheckpoint(int rank) const;

  // When all workers have been reaped: kills whatever processes they left, and theirs. Then the
  // logs are complete.
  void KillLeftOvers();

  // After that: output that no disk took.
  int64_t lost_output_bytes() const { return logs_.dropped_bytes(); }

 private:
  std::optional<StartFailure> StartAll();

  const AttemptPaths& paths_;
  const AttemptPlan& plan_;
  LogPump logs_;
  std::vector<pid_t> pids_;  // by rank
};

}  // namespace renzan::cluster::local
