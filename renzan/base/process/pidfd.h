#pragma once

// A process held by a descriptor (pidfd): the pid cannot be reused between a check and a signal,
// and poll can wait for the end of any process, not only of a child.

#include <sys/types.h>

#include "renzan/base/process/descriptor.h"

namespace renzan {

class ProcessHandle {
 public:
  // The process that has this pid now. Converts to false if there is none, or before Linux 5.3.
  explicit ProcessHandle(pid_t pid);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  // Readable (poll) once the process has ended. Not inherited by child programs.
  int fd() const { return fd_.get(); }

  // False with errno set if it has ended or may not be signalled.
  bool Signal(int signal) const;
  // Waits at most `seconds`; returns whether it has ended.
  bool WaitForEnd(double seconds) const;

 private:
  Descriptor fd_;
};

}  // namespace renzan
