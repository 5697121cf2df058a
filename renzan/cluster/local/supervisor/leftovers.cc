// Processes that a dead supervisor left behind: its workers died with it, but their detached
// processes did not.

#include <csignal>
#include <string>
#include <vector>

#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/launch_environment.h"

namespace renzan::cluster::local {
namespace {

// A limit, so that this ends even if processes are started faster than they are killed.
constexpr int kMaxRounds = 100;
constexpr int kSecondsToDie = 5;

// Returns whether it was killed. The handle prevents the process id from being reused between the
// check and the signal.
bool Kill(pid_t pid, const std::string& mark, uid_t uid) {
  const ProcessHandle process(pid);
  if (!process || !IsProcessWith(pid, mark, uid) || !process.Signal(SIGKILL)) return false;
  if (process.WaitForEnd(kSecondsToDie)) return true;
  LogWarning("process {} does not end after SIGKILL: it waits for a disk or device", pid);
  return false;
}

}  // namespace

int CleanUpAttempt(const std::string& directory) {
  const AttemptPaths paths(directory);
  if (FileLock::IsHeld(paths.lock)) return 0;  // its supervisor cleans up
  const std::string mark = std::string(kAttemptMark) + "=" + paths.directory;
  const uid_t uid = ReadPlan(paths).uid;
  int killed = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    int this_round = 0;
    for (const pid_t pid : ProcessesWith(mark, uid)) this_round += Kill(pid, mark, uid) ? 1 : 0;
    if (this_round == 0) break;
    killed += this_round;
  }
  return killed;
}

}  // namespace renzan::cluster::local
