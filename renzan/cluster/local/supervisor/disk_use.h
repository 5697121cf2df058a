#pragma once

// The disk space of all files below a directory, as `du` counts it: allocated blocks, of files with
// several names once, on one file system. Measured in small steps, because there may be millions of
// files. Files that come and go meanwhile may be missed, as are files that are still open but have
// no name any more, and what the process may not read. Whoever owns a directory below cannot lead
// it elsewhere by a link. Not thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::local {

class DiskUse {
 public:
  explicit DiskUse(const std::string& directory);
  ~DiskUse();
  DiskUse(DiskUse&&) noexcept;
  DiskUse& operator=(DiskUse&&) noexcept;

  // Looks at about as many files. True: at all now.
  bool Advance(int files);
  // So far.
  int64_t bytes() const { return bytes_; }

 private:
  struct Open;

  bool Next();
  int OpenDirectory(const std::string& path) const;
  void Count(int64_t blocks) { bytes_ += blocks * 512; }
  void LookAt(const char* name);

  Descriptor root_;                   // none: the directory does not exist
  std::vector<std::string> pending_;  // directories, relative to it
  size_t pending_bytes_ = 0;          // of their paths
  std::unique_ptr<Open> open_;        // the one that is being read
  dev_t device_ = 0;                  // of the first one
  std::set<ino_t> linked_;            // files with several names that have been counted
  int64_t bytes_ = 0;
};

}  // namespace renzan::cluster::local
