// What a dead supervisor left behind: its workers have died with it, but not what they had
// detached.

#include <csignal>
#include <string>
#include <vector>

#include "renzan/base/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/launch_environment.h"

namespace renzan::cluster::local {
namespace {

// Somebody who starts processes faster than this kills them does not win for ever.
constexpr int kMostRounds = 100;
constexpr int kSecondsToDie = 5;

// Returns whether it was killed. The handle keeps the process id from becoming another's between
// the look at it and the signal.
bool Kill(pid_t pid, const std::string& mark, uid_t uid) {
  const ProcessHandle process(pid);
  if (!process || !IsProcessWith(pid, mark, uid) || !process.Signal(SIGKILL)) return false;
  if (process.WaitForEnd(kSecondsToDie)) return true;
  LogWarning("process {} does not die: it waits for a disk or a device", pid);
  return false;
}

}  // namespace

int CleanUpAttempt(const std::string& directory) {
  const AttemptPaths paths(directory);
  if (FileLock::IsHeld(paths.lock)) return 0;  // its supervisor does it
  const std::string mark = std::string(kAttemptMark) + "=" + paths.directory;
  const uid_t uid = ReadPlan(paths).uid;
  int killed = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    int this_round = 0;
    for (const pid_t pid : ProcessesWith(mark, uid)) this_round += Kill(pid, mark, uid) ? 1 : 0;
    if (this_round == 0) break;
    killed += this_round;
  }
  return killed;
}

}  // namespace renzan::cluster::local
