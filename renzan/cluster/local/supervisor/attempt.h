#pragma once

// One attempt at running a job on this machine. A supervisor process starts its workers, holds on
// to them and their output, and writes down how they ended. It outlives the daemon: what the daemon
// needs to find it again lies in the attempt's directory.
//
//   DIR/plan.json     what to run; written before the supervisor starts
//   DIR/lock          locked for as long as the supervisor lives: taken by the daemon before it
//   starts
//                     the supervisor and inherited, so that there is no moment at which a
//                     supervisor runs without it
//   DIR/requests/     what the supervisor is being asked for, one file each
//   DIR/wake          a pipe through which it hears of new ones
//   DIR/worker-0.log  stdout and stderr of worker 0; older ones are worker-0.log.1 ...
//   DIR/started.json  once every worker has been started: their process ids
//   DIR/end.json      how every worker ended; appears whole, as the last thing a supervisor does
//   DIR/supervisor.log    what went wrong for the supervisor itself; empty as a rule
//
// The directory belongs to the daemon's user. When that is root, the job's user may list it, and
// the logs are theirs (mode 0600), but nobody else can place a file where root would write.
//
// Workers get no limits beyond those that the daemon has, but for memory: a supervisor that is told
// so (enforce_memory) looks about once a second and ends the gang of a worker that uses more than
// its memory_mib (memory_use.h says what counts). cpu_millis is what the scheduler counts with.
//
// Functions are thread-safe; each works on one directory.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace renzan::cluster::local {

struct AttemptPlan {
  int64_t job = 0;
  int attempt = 0;  // from 0
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // beyond the variables of the launch contract
  std::string working_directory;
  // Made by the supervisor, owned by the job's user; absolute.
  std::string run_dir, checkpoint_dir;
  uid_t uid = 0;
  gid_t gid = 0;  // the user's groups are looked up by the supervisor
  double grace_seconds = 30;
  // It obeys the launch contract: another SIGTERM tells it that its grace has become shorter.
  bool saves_on_stop = false;
  int64_t timeout_ms = 0;  // from the start of the workers; 0: none
  struct Worker {
    std::string node;
    int local_rank = 0;                      // among the gang's workers on its node
    std::vector<int> devices;                // CUDA_VISIBLE_DEVICES; empty: "" (none)
    int64_t cpu_millis = 0, memory_mib = 0;  // 0: not stated
  };
  std::vector<Worker> workers;   // by rank
  bool enforce_memory = false;   // no worker may use more than its memory_mib, where that is stated
  int64_t log_bytes = 64 << 20;  // a log is rotated at this size
  int log_files = 4;             // this many are kept for each worker
};

// Why the supervisor ended the workers, when it did. kItself says nothing about success: the last
// one that ran may have failed, see exit_code.
enum class EndedBy { kItself, kRequest, kTimeout, kNodeFailed, kWorkerFailed, kCannotStart };

struct AttemptEnd {
  EndedBy by = EndedBy::kItself;
  struct Worker {
    int exit_code = 0;  // of wait(2); 128 + signal as shells say it
    int signal = 0;     // 0: it exited
  };
  std::vector<Worker> workers;  // by rank
  int exit_code = 0;    // of the attempt: 0 if all are 0, else that of the worker that failed first
  std::string message;  // one line about it: "worker 2 on n1 was killed by signal 9"
  int64_t started_ms = 0, ended_ms = 0;  // Unix time
  int64_t ran_ms = 0;                    // whatever was done to the clock meanwhile
  // A request to stop gave so much grace, and workers that still ran at its end were killed; 0:
  // none.
  double killed_after_seconds = 0;
};

enum class AttemptPhase {
  kNone,      // no supervisor was ever started there (plan.json may exist)
  kStarting,  // a supervisor lives, not all workers do yet
  kRunning,
  kEnded,  // end.json is there and the supervisor is gone or about to go
  kLost,   // the supervisor is gone and left no end.json: the machine or somebody killed it
};

struct AttemptReport {
  AttemptPhase phase = AttemptPhase::kNone;
  pid_t supervisor = 0;            // while it lives
  std::vector<pid_t> worker_pids;  // when running
  std::optional<AttemptEnd> end;
};

// Makes the directory, writes the plan and starts the supervisor (`supervisor` DIR, the program
// renzan-supervisor) in a session of its own. Returns when it runs. A directory serves one attempt.
// Throws Error kConfig for a plan that nobody could run, kCantCreate for a directory that belongs
// to another user or has served, kOsError or kIo; then nothing runs.
pid_t StartAttempt(const std::string& supervisor, const std::string& directory,
                   const AttemptPlan& plan);

AttemptReport ReportOn(const std::string& directory);

// SIGTERM to all workers, SIGKILL after the grace. A later request with a shorter grace shortens
// it. RUN_DIR/stop.json says how long there is before SIGTERM is sent; when that becomes shorter it
// is written anew, and workers that obey the launch contract get another SIGTERM.
void RequestStop(const std::string& directory, double grace_seconds);
// SIGUSR1 to those workers that handle it; it would end the others.
void RequestCheckpoint(const std::string& directory);
// Kills the workers on a node that has vanished, without notice; the gang ends with kNodeFailed.
void ReportNodeFailed(const std::string& directory, const std::string& node);

// What `renzan-supervisor DIR` does: returns when all workers have ended and end.json is written.
int KeepAttempt(const std::string& directory);

// Kills whatever processes of the attempt a dead supervisor left behind (kLost), known by the
// variable RENZAN_ATTEMPT_DIR in their environment. Returns how many; none are left then. Does
// nothing while a supervisor lives.
int CleanUpAttempt(const std::string& directory);

}  // namespace renzan::cluster::local
