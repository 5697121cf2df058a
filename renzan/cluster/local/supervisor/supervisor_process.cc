#include "renzan/cluster/local/supervisor/supervisor_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/pipe.h"
#include "renzan/base/process/signals.h"

namespace renzan::cluster::local {
namespace {

// Above the supervisor's descriptors, so that none is overwritten before it is duplicated.
constexpr int kFirstSafeDescriptor = 16;

// A close-on-exec copy.
Descriptor Copy(int fd, const char* what) {
  Descriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, kFirstSafeDescriptor));
  if (!copy)
    Fail(ErrorCode::kOsError, "cannot start a supervisor: {}: {}", what, std::strerror(errno));
  return copy;
}

struct Children {
  std::mutex mutex;
  std::vector<pid_t> pids;
};

Children& SpawnedSupervisors() {
  static Children children;
  return children;
}

// StartChild() cannot do this: pass descriptors on under fixed numbers, and close all others, even
// those that the daemon itself was started with.
struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSettings(const AttemptPaths& paths, int lock, int ready) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, paths.supervisor_log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, lock, kSupervisorLockDescriptor);
    posix_spawn_file_actions_adddup2(&actions, ready, kSupervisorReadyDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&actions, kSupervisorReadyDescriptor + 1);
    posix_spawnattr_init(&attributes);
    const sigset_t none = SignalSet({}), all = AllSignals();
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

}  // namespace

pid_t SpawnSupervisor(const std::string& supervisor, const AttemptPaths& paths,
                      int lock_descriptor) {
  Pipe pipe = MakePipe();
  Descriptor ready = Copy(pipe.write_end.get(), "pipe");
  const Descriptor lock = Copy(lock_descriptor, "lock");
  pipe.write_end.Close();

  std::string name = supervisor, directory = paths.directory;
  char* const argv[] = {name.data(), directory.data(), nullptr};
  pid_t pid = -1;
  {
    const SpawnSettings settings(paths, lock.get(), ready.get());
    const int error = posix_spawn(&pid, supervisor.c_str(), &settings.actions, &settings.attributes,
                                  argv, environ);
    if (error != 0)
      Fail(ErrorCode::kOsError, "cannot start the supervisor of {} ({}): {}", paths.directory,
           supervisor, std::strerror(error));
  }
  ready.Close();
  const std::string report = ReadToEnd(pipe.read_end);
  if (report == kSupervisorReady) {
    const std::lock_guard guard(SpawnedSupervisors().mutex);
    SpawnedSupervisors().pids.push_back(pid);
    return pid;
  }
  waitpid(pid, nullptr, 0);
  Fail(
      ErrorCode::kOsError, "cannot start the supervisor of {}: {}", paths.directory,
      report.empty() ? fmt::format("it ended unexpectedly: see {}", paths.supervisor_log) : report);
}

void ReapSupervisors() {
  const std::lock_guard guard(SpawnedSupervisors().mutex);
  std::erase_if(SpawnedSupervisors().pids,
                [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace renzan::cluster::local
