#pragma once

// An exclusive advisory lock on a file, so that two processes do not write to the same place. The
// kernel releases it when the process ends for any reason. Not thread-safe.
//
// Programs that the process starts do not inherit the lock; a child made by fork() alone shares it
// until it exits or calls exec. The file is never removed: that would race with another process
// that has just opened it.

#include <functional>
#include <memory>
#include <string>

namespace renzan {

class FileLock {
 public:
  // Null if another process, or another FileLock of this one, holds the lock. `owner` is written
  // into the file as one line, for OwnerOf(). Throws Error kCantCreate if the file cannot be
  // opened, kIo if locking fails. On a file system without locks it warns and continues as if
  // locked.
  static std::unique_ptr<FileLock> TryLock(const std::string& path, const std::string& owner);
  // The same, retrying for up to `seconds`, or until `ends()`: the holder may be about to exit.
  static std::unique_ptr<FileLock> WaitForLock(const std::string& path, const std::string& owner,
                                               double seconds,
                                               const std::function<bool()>& ends = {});
  // Takes over a lock from the process that started this program and passed its descriptor() as
  // `fd`. Null if `fd` is not the file at `path`. Programs that this one starts do not inherit it.
  static std::unique_ptr<FileLock> Inherit(int fd, const std::string& path,
                                           const std::string& owner);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // The `owner` text of the last holder, for error messages. Empty if there is none.
  static std::string OwnerOf(const std::string& path);

  // Whether the lock is held. A concurrent TryLock() may fail for a moment meanwhile. Throws Error
  // kNoInput if the file exists but cannot be opened.
  static bool IsHeld(const std::string& path);

  // For starting a program that takes over the lock, which is held until every process with this
  // descriptor has closed it or exited.
  int descriptor() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace renzan
