#pragma once

// One attempt to run a job on this machine. A supervisor process starts the workers, monitors them,
// collects their output and records how they ended. It keeps running when the daemon ends: the next
// daemon finds it through the files in the attempt's directory.
//
//   DIR/plan.json     what to run; written before the supervisor starts
//   DIR/lock          held while the supervisor is alive; the daemon takes it and the supervisor
//                     inherits it, so that no supervisor ever runs without the lock
//   DIR/requests/     requests to the supervisor, one file each; spare ones (spare_file.h)
//   DIR/wake          a named pipe that wakes it up when there is a new request
//   DIR/worker-0.log  stdout and stderr of worker 0; rotated: worker-0.log.1 ...
//   DIR/started.json  process ids, once every worker has been started
//   DIR/end.json      how every worker ended; written atomically, last of all
//   DIR/end.spare     room for it on a full disk; removed with the spare requests at the end
//   DIR/supervisor.log  the supervisor's own warnings and errors; usually empty
//
// The supervisor puts back what its job removes of these (attempt_directory.h), except logs.
//
// The directory belongs to the daemon's user. If that is root, the job's user may list it and owns
// the logs (mode 0600), but cannot create files where root would write.
//
// Workers have what the job inherited from its submitter (spec/inherited.h), with no limit above
// the daemon's hard ones. With enforce_memory, the supervisor also checks about
// once a second and ends the gang when a worker uses more than its memory_mib (memory_use.h).
// Control groups (AttemptPlan::cgroups) hold all processes of the attempt, may limit the CPU time
// and memory of all workers together, and keep them from GPUs that they were not given. With
// max_disk_mib, it measures the job's directory again and again (disk_use.h), and kills the gang
// once its files take more.
//
// Functions are thread-safe; each works on one directory.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/cgroup.h"
#include "renzan/cluster/core/engine/outcome.h"

namespace renzan::cluster::local {

struct AttemptPlan {
  int64_t job = 0;
  int attempt = 0;  // from 0
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // beyond the variables of the launch contract
  // A file of what it inherits (spec/inherited.h), not part of plan.json because that is kept.
  // Empty: nothing, as for jobs of earlier versions; workers then have the daemon's PATH and
  // limits.
  std::string inherited_file;
  std::string working_directory;
  // Absolute; created by the supervisor for the job's user.
  std::string run_dir, checkpoint_dir;
  uid_t uid = 0;
  gid_t gid = 0;  // the supervisor looks up supplementary groups
  double grace_seconds = 30;
  // It follows the launch contract: a second SIGTERM means that its grace period was shortened.
  bool saves_on_stop = false;
  int64_t timeout_ms = 0;  // from the start of the workers; 0: none
  struct Worker {
    std::string node;
    int local_rank = 0;                      // among the gang's workers on its node
    std::vector<int> devices;                // the machine's GPUs, for CUDA_VISIBLE_DEVICES
    int64_t cpu_millis = 0, memory_mib = 0;  // 0: not specified
  };
  std::vector<Worker> workers;  // by rank
  bool enforce_memory = false;  // for workers with a memory_mib
  int64_t max_disk_mib = 0;     // of the job's directory, DIR/..; 0: no limit
  // The attempt's control groups (attempt_cgroups.h) are made in these. Without a directory: it has
  // none of that kind, and no limit.
  struct Cgroups {
    std::string name;  // of its groups; StartAttempt() chooses one
    Cgroup hold, cpu, memory, devices;
  };
  Cgroups cgroups;
  std::vector<dev_t> denied_devices;  // with cgroups.devices: the machine's other GPUs
  int64_t log_bytes = 64 << 20;       // a log is rotated at this size
  int log_files = 4;                  // kept for each worker
};

enum class AttemptPhase {
  kNone,      // no supervisor was ever started (plan.json may exist)
  kStarting,  // the supervisor is alive, not all workers have started
  kRunning,
  kEnded,  // end.json exists; the supervisor has exited or is about to
  kLost,   // the supervisor died without an end.json: it was killed, or the machine went down
};
inline bool IsAlive(AttemptPhase phase) {
  return phase == AttemptPhase::kStarting || phase == AttemptPhase::kRunning;
}

struct AttemptReport {
  AttemptPhase phase = AttemptPhase::kNone;
  pid_t supervisor = 0;            // while it is alive
  std::vector<pid_t> worker_pids;  // when running
  std::optional<AttemptEnd> end;
};

// Creates the directory, writes the plan and starts the supervisor (`supervisor` DIR, the program
// renzan-supervisor) in a new session. Returns once it runs. A directory is for one attempt. Throws
// Error kConfig for an invalid plan, kCantCreate for a directory that belongs to another user or
// was used before, kOsError or kIo; then nothing runs.
pid_t StartAttempt(const std::string& supervisor, const std::string& directory,
                   const AttemptPlan& plan);

AttemptReport ReportOn(const std::string& directory);

// SIGTERM to all workers, SIGKILL after the grace period, which a later request can shorten but not
// extend. RUN_DIR/stop.json has the deadline before SIGTERM is sent. When the deadline is brought
// forward, it is rewritten, and workers that follow the launch contract get another SIGTERM.
void RequestStop(const std::string& directory, double grace_seconds);
// SIGUSR1 to the workers that handle it (it would kill others).
void RequestCheckpoint(const std::string& directory);
// From now on the attempt has this time limit (AttemptPlan::timeout_ms; 0: none).
void RequestTimeLimit(const std::string& directory, int64_t timeout_ms);
// Kills the workers on a failed node, without notice; the gang ends with kNodeFailed.
void ReportNodeFailed(const std::string& directory, const std::string& node);

// The main function of `renzan-supervisor DIR`. Returns when all workers have ended and end.json is
// written.
int SuperviseAttempt(const std::string& directory);

// Kills the processes that a dead supervisor left behind (kLost), which it finds by their control
// group, and by the variable RENZAN_ATTEMPT_DIR in their environment. Returns their number. Does
// nothing while a supervisor is alive.
int CleanUpAttempt(const std::string& directory);

}  // namespace renzan::cluster::local
