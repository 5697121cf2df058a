#pragma once

// Signals that are queued and fetched instead of interrupting the program.

#include <csignal>
#include <initializer_list>
#include <vector>

#include "renzan/base/process/descriptor.h"

namespace renzan {

// SIGTERM, SIGINT or SIGHUP: a request to end.
bool IsStopSignal(int signal);

// Whether this process ignores it, as under nohup or in the background of a shell.
bool IsIgnored(int signal);
// The ones that are not ignored: a program that handled an ignored one would undo what its caller
// asked for.
std::vector<int> NotIgnored(std::initializer_list<int> signals);

sigset_t SignalSet(std::initializer_list<int> signals);
sigset_t AllSignals();

// During its lifetime these signals are blocked in the constructing thread and the threads it
// starts, and are queued here; the destructor discards those not taken. Construct it before other
// threads exist.
class SignalQueue {
 public:
  // Throws Error kOsError.
  explicit SignalQueue(const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // Readable (poll) if Take() has a signal to return.
  int fd() const { return fd_.get(); }
  // The next pending signal; 0 if there is none.
  int Take() const;
  // Waits for the next signal; 0 after `seconds`, or earlier if `other_fd` (-1 for none) is
  // readable.
  int Next(double seconds, int other_fd) const;

  // The previous signal mask, for child processes.
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t before_;
  Descriptor fd_;
};

}  // namespace renzan
