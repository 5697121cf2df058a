#pragma once

// Whether this process may make control groups for the processes that it starts: version 2 where
// its own group is delegated to it, else version 1.

#include <sys/types.h>

#include <string>
#include <vector>

#include "renzan/base/cgroup.h"

namespace renzan {

struct CgroupSupport {
  // A group inside which it can make others. Without a directory: there is none, for this reason.
  struct Parent {
    Cgroup group{.directory = "", .v2 = true};
    std::string why_not;
  };
  Parent hold;         // to hold processes (ProcessCgroup)
  Parent cpu, memory;  // to limit these
  Parent devices;      // to deny these (ProcessCgroup::Deny)
};

struct CgroupSupportOptions {
  std::string parent;   // a group of version 2 instead of this process's own
  bool enable = false;  // may enable controllers of version 2 for the groups in the parent
  std::vector<dev_t> devices = {};  // that must be possible to deny
  std::string root;                 // prefixed to every path that is read (for tests)
};

// Tries it: makes a group, lets a child enter it, and removes it. Throws Error kConfig if
// `parent` is no such group.
CgroupSupport FindCgroupSupport(const CgroupSupportOptions& options = {});

}  // namespace renzan
