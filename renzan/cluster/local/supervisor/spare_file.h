#pragma once

// Files with blocks on the disk that are kept for what must be written even if jobs have filled the
// disk. Holds where overwriting a block needs no other one (see store/reserved_room.h). Functions
// are thread-safe.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace renzan::cluster::local {

// Creates the file unless it exists. Throws Error kIo on a full disk.
void MakeSpare(const std::string& path, size_t bytes);

// Like WriteFileAtomically. If there is no room for a new file, the first of `spares` that exists
// is overwritten and renamed.
void WriteEvenIfFull(const std::string& path, std::string_view content,
                     const std::vector<std::string>& spares);

}  // namespace renzan::cluster::local
