// Processes that a dead supervisor left behind: its workers died with it, but their detached
// processes did not.

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_cgroups.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/launch_environment.h"

namespace renzan::cluster::local {
namespace {

// A limit, so that this ends even if processes are started faster than they are killed.
constexpr int kMaxRounds = 100;
constexpr int kSecondsToDie = 5;
// A process that hands on to a new one and ends while they are listed is seen in neither. A control
// group holds such ones; without, several rounds must find nothing.
constexpr int kQuietRounds = 5;

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
  const AttemptPlan plan = ReadPlan(paths);
  const AttemptCgroups cgroups(plan);
  int killed = cgroups.Kill();
  // Without control groups, and for what has left them.
  const int quiet_rounds = plan.cgroups.hold.directory.empty() ? kQuietRounds : 1;
  for (int round = 0, quiet = 0; round < kMaxRounds && quiet < quiet_rounds; ++round) {
    int this_round = 0;
    // The newest first, and at once: the last link of a chain that hands on soon has a successor.
    std::vector<pid_t> processes = AllProcesses();
    std::sort(processes.rbegin(), processes.rend());
    for (const pid_t pid : processes) this_round += Kill(pid, mark, plan.uid) ? 1 : 0;
    quiet = this_round == 0 ? quiet + 1 : 0;
    killed += this_round;
  }
  cgroups.Remove();
  return killed;
}

}  // namespace renzan::cluster::local
