#pragma once

// Signals that wait to be fetched instead of interrupting whatever runs.

#include <csignal>
#include <initializer_list>
#include <vector>

#include "renzan/base/process/descriptor.h"

namespace renzan {

// SIGTERM, SIGINT or SIGHUP: whoever sends it wants the program to end.
bool IsStopSignal(int signal);

// Whether this process ignores it, as under nohup or in a shell's background.
bool IsIgnored(int signal);

sigset_t SignalSet(std::initializer_list<int> signals);
sigset_t AllSignals();

// While it lives, these signals are blocked in the thread that made it, and in those that are
// started from there, and wait here; those that nobody takes end with it. Make it before there are
// other threads.
class SignalQueue {
 public:
  // Throws Error kOsError.
  explicit SignalQueue(const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // Can be read (poll) when Take() has something to return.
  int fd() const { return fd_.get(); }
  // The next signal that waits; 0 if none does.
  int Take() const;
  // The next signal; 0 after `seconds`, or earlier if `other_fd` (-1 for none) can be read.
  int Next(double seconds, int other_fd) const;

  // What a child should have.
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t before_;
  Descriptor fd_;
};

}  // namespace renzan
