#pragma once

// A control group that holds processes. What they start is in it too, in whatever process group and
// session and with whatever environment, so that all of them can be found and killed. For groups of
// version 2, and of the freezer hierarchy of version 1; in version 1, Deny() is for those of the
// devices hierarchy. A process may have ended by the time it is listed. Not thread-safe.

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "renzan/base/cgroup.h"
#include "renzan/base/process/descriptor.h"

namespace renzan {

class ProcessCgroup {
 public:
  explicit ProcessCgroup(Cgroup group) : group_(std::move(group)) {}

  const std::string& directory() const { return group_.directory; }

  // Throws Error kCantCreate or kIo if it cannot be made, or exists.
  void Make() const;
  // Removes it with the groups inside. False if there are still processes in it. True if there is
  // no such group.
  bool Remove() const;

  // A process that writes "0" there enters the group (ChildOptions::cgroups). Not inherited by
  // child programs. Throws Error kCantCreate or kIo.
  Descriptor Entrance() const;

  // The live processes in the group and in groups inside it.
  std::vector<pid_t> Processes() const;

  // Kills all processes in it and in groups inside it, and what they start meanwhile. Returns
  // whether all have ended within `seconds`; one that waits for a disk or device may not.
  bool Kill(double seconds) const;

  // From now on, no process in it or in groups inside it can open these character devices or make
  // nodes of them. Throws Error kOsError.
  void Deny(const std::vector<dev_t>& devices) const;

  // Writes one of the group's files. Returns 0 or the errno.
  int Write(const std::string& file, const std::string& value) const;

 private:
  // Stops all of them, so that none can start another. Waits a little for those that are busy in
  // the kernel. Does nothing where the kernel cannot (version 2 before Linux 5.2).
  void Freeze() const;
  void Thaw() const;
  void Signal(int signal) const;

  Cgroup group_;
};

}  // namespace renzan
