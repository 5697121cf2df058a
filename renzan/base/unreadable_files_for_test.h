#pragma once

// For tests: a disk on which some files cannot be read.

#include <cerrno>
#include <string>
#include <utility>

#include "renzan/base/file/file_system.h"

namespace renzan {

class UnreadableFiles : public FileSystem {
 public:
  enum class Call { kStat, kOpen, kRead };

  // Until Heal(), this call fails with `error` on files whose path contains `part`. Not while files
  // are being read.
  void Break(std::string part, Call call, int error) {
    part_ = std::move(part);
    call_ = call;
    error_ = error;
  }
  void Heal() { part_.clear(); }

  int Stat(const std::string& path, struct stat* info) override {
    return Fails(path, Call::kStat) ? -1 : FileSystem::Stat(path, info);
  }
  int OpenForReading(const std::string& path) override {
    return Fails(path, Call::kOpen) ? -1 : FileSystem::OpenForReading(path);
  }
  ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                 uint64_t offset) override {
    return Fails(path, Call::kRead) ? -1 : FileSystem::ReadAt(fd, path, data, bytes, offset);
  }

 private:
  bool Fails(const std::string& path, Call call) const {
    if (part_.empty() || call != call_ || path.find(part_) == std::string::npos) return false;
    errno = error_;
    return true;
  }

  std::string part_;
  Call call_ = Call::kRead;
  int error_ = EIO;
};

}  // namespace renzan
