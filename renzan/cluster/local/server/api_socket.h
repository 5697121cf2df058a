#pragma once

// The Unix socket on which the daemon is asked, and who may ask. Thread-safe.

#include <sys/types.h>

#include <string>
#include <vector>

#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

inline constexpr int kListenBacklog = 128;

// A listening socket at `path`, mode 0600, or 0666 when `for_others`. One that a dead daemon has
// left there is removed. Throws Error kConfig (path too long), kUnavailable (somebody answers
// there), kCantCreate. For the only thread of the process.
int ListenOn(const std::string& path, bool for_others);

// Who is at the other end; the first one does not look for a name. Throw Error kOsError.
uid_t PeerUidOf(int fd);
Caller PeerOf(int fd);

// "ann"; "uid-1234" for one without a name.
std::string UserName(uid_t uid);

// The daemon's own user and root may always ask. A daemon of root also lets in those that
// `allow_users` names; "*" is everyone.
bool MayAsk(const Caller& caller, const std::vector<std::string>& allow_users);

}  // namespace renzan::cluster::local
