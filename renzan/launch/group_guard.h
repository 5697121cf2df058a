#pragma once

#include <sys/types.h>

#include "renzan/base/process/pipe.h"

namespace renzan {

// A process that waits until this one dies, however that happens, and then kills the process groups
// that were added: a death signal (ChildOptions) reaches only children. Construct it before other
// threads exist.
class GroupGuard {
 public:
  // Throws Error kOsError.
  GroupGuard();
  // Ends that process, and leaves the groups alone.
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  void Add(pid_t group) const;

 private:
  Pipe pipe_;
  pid_t pid_ = -1;
};

}  // namespace renzan
