#pragma once

// Copies files of this machine to a place of any kind, as they are named there.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace renzan {

struct Uploaded {
  uint64_t files = 0, bytes = 0;
  uint64_t left_out = 0;  // links, sockets and the like
};

// A file, or a directory with everything below it.
struct UploadSource {
  std::string path;
  std::string name;  // below the target; empty: the target itself
};
// Its name is what follows "/./" in `path`, or else the last part of it.
UploadSource UploadSourceOf(const std::string& path);

// Links are neither copied nor followed. Existing files are replaced. Throws Error kNoInput for a
// source that does not exist, kTempFail once `stop` is true; then some files have been copied, each
// of them whole.
Uploaded UploadFiles(std::span<const UploadSource> sources, const std::string& to,
                     const std::function<bool()>& stop);

}  // namespace renzan
