#include "renzan/launch/group_guard.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// End of file on the pipe means that the other process has died.
[[noreturn]] void Guard(int pipe) {
  setpgid(0, 0);
  std::vector<pid_t> groups;
  for (pid_t group = 0;;) {
    const ssize_t length = read(pipe, &group, sizeof(group));
    if (length == static_cast<ssize_t>(sizeof(group))) {
      groups.push_back(group);
    } else if (length >= 0 || errno != EINTR) {
      break;
    }
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

GroupGuard::GroupGuard() : pipe_(MakePipe()), pid_(fork()) {
  if (pid_ < 0) Fail(ErrorCode::kOsError, "cannot start a process: fork: {}", std::strerror(errno));
  if (pid_ == 0) {
    pipe_.write_end.Close();
    Guard(pipe_.read_end.get());
  }
}

GroupGuard::~GroupGuard() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void GroupGuard::Add(pid_t group) const {
  // A pipe takes so few bytes atomically, and the guard reads for as long as this process lives.
  const ssize_t written = write(pipe_.write_end.get(), &group, sizeof(group));
  static_cast<void>(written);
}

}  // namespace renzan
