#pragma once

// The daemon's Unix socket, and which users may connect. Thread-safe.

#include <sys/types.h>

#include <string>
#include <vector>

#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

inline constexpr int kListenBacklog = 1024;

// A listening socket at `path`, with mode 0600, or 0666 if `for_others`. Replaces the socket of a
// dead daemon. Throws Error kConfig (path too long), kUnavailable (another daemon listens there) or
// kCantCreate. For a single-threaded process, because it changes the umask.
int ListenOn(const std::string& path, bool for_others);

// The peer's user; PeerUidOf() does not look up the name. Throw Error kOsError.
uid_t PeerUidOf(int fd);
Caller PeerOf(int fd);

// The daemon's own user and root are always allowed. A daemon that runs as root also allows the
// users in `allow_users`; "*" means all.
bool IsAllowed(const Caller& caller, const std::vector<std::string>& allow_users);

}  // namespace renzan::cluster::local
