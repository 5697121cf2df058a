#pragma once

// Child processes of a launcher: starting one that cannot outlive us, and waiting for signals and
// output at once. For the main thread of a program without other threads.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace renzan {

// SIGTERM, SIGINT or SIGHUP: whoever sends it wants the run to end.
bool IsStopSignal(int signal);

// While it lives, the signals that concern workers (SIGTERM, SIGINT, SIGUSR1, SIGCHLD, and SIGHUP
// unless nohup ignores it) wait here to be fetched instead of acting.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // The next signal; 0 after `seconds`, or earlier if `other_fd` (-1 for none) can be read.
  int Next(double seconds, int other_fd) const;

  // What a child should have.
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t mask_, before_;
  int fd_ = -1;
};

struct ChildOptions {
  std::string program;  // looked for in PATH
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  int death_signal = SIGKILL;            // what it gets should we die
  bool keeps_sigterm_blocked = false;    // and gets SIGINT, at its default; for mpirun
  int stderr_fd = 2;
};

// Starts it with stdin from /dev/null, in a process group of its own, so that a terminal's Ctrl-C
// reaches it through us and only once. Exit status 127: it could not be executed.
pid_t StartChild(const ChildOptions& options, const SignalQueue& signals);

// Processes that `pid` started and that still live or wait to be reaped.
std::vector<pid_t> ChildrenOf(pid_t pid);

// While it lives, processes that a child of ours leaves behind become our children. The destructor
// kills every child that has come since the constructor, and theirs.
class OrphanKeeper {
 public:
  OrphanKeeper();
  ~OrphanKeeper();
  OrphanKeeper(const OrphanKeeper&) = delete;
  OrphanKeeper& operator=(const OrphanKeeper&) = delete;

 private:
  std::vector<pid_t> before_;
};

}  // namespace renzan
