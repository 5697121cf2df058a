#pragma once

// Reads files in directories that belong to a job's user. A daemon that runs as root must not
// follow links, block on a pipe or read huge files there. Thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace renzan::cluster::local {

// Opens the regular file `relative` ("run/status.json") for reading, below `root`, which is the
// daemon's. No part of `relative` may be a symbolic link, and the file must belong to `owner`.
// Returns -1 if there is no such file.
int OpenUntrusted(const std::string& root, const std::string& relative, uid_t owner);

// The content; nothing if there is no such file or it has more than `max_bytes`.
std::optional<std::string> ReadUntrusted(const std::string& root, const std::string& relative,
                                         uid_t owner, size_t max_bytes);

// The total size of the largest file or directory directly in the directory `relative` below
// `root`; 0 if there is none. Does not follow links, and visits a limited number of files so that
// users cannot keep the daemon busy.
int64_t LargestEntryIn(const std::string& root, const std::string& relative);

}  // namespace renzan::cluster::local
