#pragma once

// The user that submits a job and that its workers run as.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "renzan/base/process/child.h"

namespace renzan::cluster::local {

struct JobUser : UserIds {
  std::string name, home, shell;
};

// "ann"; "uid-1234" for a user without a name. Thread-safe.
std::string UserName(uid_t uid);

// A user without a name gets the home directory / and /bin/sh. Thread-safe.
JobUser LookUpUser(uid_t uid, gid_t gid);

// With the user's own group; nothing if there is no user of that name. Throws Error kOsError if
// that cannot be looked up. Thread-safe.
std::optional<JobUser> FindUser(const std::string& name);

// Of a user's jobs, by name; one without a name is its number. Thread-safe.
std::vector<std::string> GroupNames(uid_t uid, gid_t gid);

// Why a name stands for no user or group of this machine; "": it stands for one. Thread-safe.
std::string WhyNoUser(const std::string& name);
std::string WhyNoGroup(const std::string& name);

// Creates `path` and missing parents as the user. Where the user lacks permission, root creates the
// last directory only and changes its owner. For a single-threaded process.
// Throws Error kCantCreate or kIo.
void MakeDirectoryFor(const JobUser& user, const std::string& path);

}  // namespace renzan::cluster::local
