#pragma once

// The user as whom a job's workers run.

#include <sys/types.h>

#include <string>
#include <vector>

namespace renzan::cluster::local {

struct JobUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary, with gid
  std::string name, home, shell;
};

// A user id that the machine knows nothing about gets its number as name, "/" and /bin/sh.
// Thread-safe.
JobUser LookUpUser(uid_t uid, gid_t gid);

// Becomes that user for good; for a child between fork and exec, so it allocates nothing. A process
// that is not root can only stay who it is. False with errno set when it may not.
bool BecomeUser(const JobUser& user);

// Makes those directories of `path` that do not exist, as the user; where the user may not, the
// last one is made by us and given to the user. For a process with one thread.
// Throws Error kCantCreate or kIo.
void MakeDirectoryFor(const JobUser& user, const std::string& path);

}  // namespace renzan::cluster::local
