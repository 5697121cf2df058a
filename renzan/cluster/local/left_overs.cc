// What a dead keeper left behind: its workers have died with it, but not what they had detached.

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "renzan/base/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/attempt.h"
#include "renzan/cluster/local/attempt_files.h"
#include "renzan/cluster/local/launch_environment.h"
#include "renzan/cluster/local/processes.h"

extern "C" {  // which glibc 2.36 itself forgets
#include <sys/pidfd.h>
}

namespace renzan::cluster::local {
namespace {

// Somebody who starts processes faster than this kills them does not win for ever.
constexpr int kMostRounds = 100;
constexpr int kSecondsToDie = 5;

// Returns whether it was killed. The descriptor keeps the process id from becoming another's
// between the look at it and the signal.
bool Kill(pid_t pid, const std::string& mark, uid_t uid) {
  const int process = pidfd_open(pid, 0);
  if (process < 0) return false;
  bool killed =
      IsProcessWith(pid, mark, uid) && pidfd_send_signal(process, SIGKILL, nullptr, 0) == 0;
  pollfd end{process, POLLIN, 0};
  if (killed && poll(&end, 1, kSecondsToDie * 1000) == 0) {
    LogWarning("process {} does not die: it waits for a disk or a device", pid);
    killed = false;
  }
  close(process);
  return killed;
}

}  // namespace

int CleanUpAttempt(const std::string& directory) {
  const AttemptPaths paths(directory);
  if (FileLock::IsHeld(paths.lock)) return 0;  // its keeper does it
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
