#pragma once

// The user as whom a job's workers run.

#include <sys/types.h>

#include <string>

#include "renzan/base/process/child.h"

namespace renzan::cluster::local {

struct JobUser : UserIds {
  std::string name, home, shell;
};

// A user id that the machine knows nothing about gets its number as name, "/" and /bin/sh.
// Thread-safe.
JobUser LookUpUser(uid_t uid, gid_t gid);

// Makes those directories of `path` that do not exist, as the user; where the user may not, the
// last one is made by us and given to the user. For a process with one thread.
// Throws Error kCantCreate or kIo.
void MakeDirectoryFor(const JobUser& user, const std::string& path);

}  // namespace renzan::cluster::local
