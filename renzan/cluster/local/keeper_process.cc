#include "renzan/cluster/local/keeper_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster::local {
namespace {

// Above those that the keeper gets, so that none is overwritten before it is used.
constexpr int kFirstSafeDescriptor = 16;

// A descriptor that programs do not inherit.
class Descriptor {
 public:
  Descriptor(int fd, const std::string& what)
      : fd_(fcntl(fd, F_DUPFD_CLOEXEC, kFirstSafeDescriptor)) {
    const int error = errno;
    if (fd_ < 0)
      Fail(ErrorCode::kOsError, "cannot start a keeper: {}: {}", what, std::strerror(error));
  }
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Children {
  std::mutex mutex;
  std::vector<pid_t> pids;
};

Children& OurKeepers() {
  static Children children;
  return children;
}

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSettings(const AttemptPaths& paths, int lock, int ready) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, paths.keeper_log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, lock, kKeeperLockDescriptor);
    posix_spawn_file_actions_adddup2(&actions, ready, kKeeperReadyDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&actions, kKeeperReadyDescriptor + 1);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
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

std::string ReadToEnd(int fd) {
  std::string text;
  char bytes[512];
  for (;;) {
    const ssize_t length = read(fd, bytes, sizeof(bytes));
    if (length > 0) text.append(bytes, static_cast<size_t>(length));
    if (length == 0 || (length < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

pid_t SpawnKeeper(const std::string& keeper, const AttemptPaths& paths, int lock_descriptor) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0)
    Fail(ErrorCode::kOsError, "cannot start a keeper: pipe: {}", std::strerror(errno));
  Descriptor answer(fds[0], "pipe"), ready(fds[1], "pipe"), lock(lock_descriptor, "lock");
  close(fds[0]);
  close(fds[1]);

  std::string name = keeper, directory = paths.directory;
  char* const argv[] = {name.data(), directory.data(), nullptr};
  pid_t pid = -1;
  {
    const SpawnSettings settings(paths, lock.get(), ready.get());
    const int error =
        posix_spawn(&pid, keeper.c_str(), &settings.actions, &settings.attributes, argv, environ);
    if (error != 0)
      Fail(ErrorCode::kOsError, "cannot start the keeper of {} ({}): {}", paths.directory, keeper,
           std::strerror(error));
  }
  ready.Close();
  const std::string said = ReadToEnd(answer.get());
  if (said == kKeeperReady) {
    const std::lock_guard guard(OurKeepers().mutex);
    OurKeepers().pids.push_back(pid);
    return pid;
  }
  waitpid(pid, nullptr, 0);
  Fail(ErrorCode::kOsError, "the keeper of {} could not begin: {}", paths.directory,
       said.empty() ? fmt::format("it ended without a word; see {}", paths.keeper_log) : said);
}

void ReapKeepers() {
  const std::lock_guard guard(OurKeepers().mutex);
  std::erase_if(OurKeepers().pids, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace renzan::cluster::local
