#pragma once

// Reading files in directories that belong to a job's user. A daemon of root must not be led
// elsewhere by links, kept waiting by a pipe or filled up by a huge file. Thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace renzan::cluster::local {

// Opens the regular file `relative` ("run/status.json") below `root`, which is ours, for reading.
// No part of `relative` may be a symbolic link; the file must belong to `owner`. Returns -1 when
// there is no such file.
int OpenUntrusted(const std::string& root, const std::string& relative, uid_t owner);

// The content; nothing when there is no such file or it has more than `max_bytes`.
std::optional<std::string> ReadUntrusted(const std::string& root, const std::string& relative,
                                         uid_t owner, size_t max_bytes);

// Bytes of the largest file or directory right in the directory `relative` below `root`, with all
// that is in it; 0 when there is nothing. Follows no links and looks at a few thousand files at
// most, so that nobody can keep a daemon busy.
int64_t LargestEntryIn(const std::string& root, const std::string& relative);

}  // namespace renzan::cluster::local
