#pragma once

// A process that is held by a descriptor: its number cannot become another's between a look at it
// and a signal, and its end can be waited for together with other events, also when it is not a
// child.

#include <sys/types.h>

#include "renzan/base/process/descriptor.h"

namespace renzan {

class ProcessHandle {
 public:
  // Whoever has this number now. False afterwards: nobody, or the kernel is older than 5.3.
  explicit ProcessHandle(pid_t pid);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  // Can be read (poll) once the process has ended. Programs do not inherit it.
  int fd() const { return fd_.get(); }

  // False with errno set when it has ended or we have no right to.
  bool Signal(int signal) const;
  // Whether it has ended, after at most so long.
  bool WaitForEnd(double seconds) const;

 private:
  Descriptor fd_;
};

}  // namespace renzan
