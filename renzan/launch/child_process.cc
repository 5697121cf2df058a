#include "renzan/launch/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr int kExitCannotExecute = 127;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool IsStopSignal(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

SignalQueue::SignalQueue() {
  sigemptyset(&mask_);
  for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&mask_, signal);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&mask_, SIGHUP);
  fd_ = signalfd(-1, &mask_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) Fail(ErrorCode::kOsError, "signalfd: {}", std::strerror(errno));
  pthread_sigmask(SIG_BLOCK, &mask_, &before_);
}

SignalQueue::~SignalQueue() {
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::Next(double seconds, int other_fd) const {
  pollfd fds[] = {{fd_, POLLIN, 0}, {other_fd, POLLIN, 0}};
  poll(fds, 2, static_cast<int>(seconds * 1000));
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

pid_t StartChild(const ChildOptions& options, const SignalQueue& signals) {
  // Nothing may be allocated between fork and exec.
  const std::vector<char*> argv = Pointers(options.argv), envp = Pointers(options.environment);
  sigset_t mask = signals.mask_before();
  if (options.keeps_sigterm_blocked) {
    sigaddset(&mask, SIGTERM);
    sigdelset(&mask, SIGINT);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    Fail(ErrorCode::kOsError, "cannot start {}: fork: {}", options.program, std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (getppid() != parent) _exit(kExitCannotExecute);  // it has died already
    if (const int null = open("/dev/null", O_RDONLY); null > 0) dup2(null, STDIN_FILENO);
    if (options.stderr_fd != STDERR_FILENO) dup2(options.stderr_fd, STDERR_FILENO);
    if (options.keeps_sigterm_blocked) std::signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    execvpe(options.program.c_str(), argv.data(), envp.data());
    _exit(kExitCannotExecute);
  }
  setpgid(pid, pid);  // here too, so that it is done when either of us goes on
  return pid;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  // Each thread has its own: mpirun starts many workers from several.
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child; file >> child;) children.push_back(child);
  }
  return children;
}

OrphanKeeper::OrphanKeeper() : before_(ChildrenOf(getpid())) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

OrphanKeeper::~OrphanKeeper() {
  const auto is_new = [&](pid_t pid) {
    return std::find(before_.begin(), before_.end(), pid) == before_.end();
  };
  for (bool found = true; found;) {
    found = false;
    for (pid_t child : ChildrenOf(getpid())) {
      if (!is_new(child)) continue;
      found = true;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace renzan
