#pragma once

#include <string>

namespace renzan {

// Makes the names in a directory durable, where the file system can: some (FUSE, network) do not
// support fsync on directories. Throws Error kIo.
void SyncDirectory(const std::string& path);

// Those in all directories below it.
void SyncDirectoriesBelow(const std::string& path);

}  // namespace renzan
