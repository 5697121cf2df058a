#pragma once

// An exclusive advisory lock on a file, so that two processes do not write to the same place. The
// kernel releases it when the process ends, however it ends. Not thread-safe.
//
// Programs that the process starts do not inherit the lock; a child made by fork() alone shares it
// until it ends or calls exec. The file itself stays: removing it would race with another process
// that has just opened it.

#include <memory>
#include <string>

namespace renzan {

class FileLock {
 public:
  // Null when another process, or another FileLock of this one, has the lock. `owner` is written
  // into the file as one line, for OwnerOf(). Throws Error kCantCreate when the file cannot be
  // opened, kIo when locking fails. On a file system without locks it warns and goes on as if
  // locked.
  static std::unique_ptr<FileLock> TryLock(const std::string& path, const std::string& owner);
  // The same, trying for so long: the one who has it may be about to end.
  static std::unique_ptr<FileLock> WaitForLock(const std::string& path, const std::string& owner,
                                               double seconds);
  // The lock that another process has handed over by starting this program with a descriptor() of
  // its own as `fd`. Null when `fd` is not the file at `path`. Programs that this one starts do not
  // inherit it further.
  static std::unique_ptr<FileLock> Inherit(int fd, const std::string& path,
                                           const std::string& owner);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // What the one who took the lock last said about itself, for the message of the one who did not
  // get it. Empty when the file says nothing.
  static std::string OwnerOf(const std::string& path);

  // Whether somebody has the lock. While it looks, a TryLock() elsewhere may fail for a moment.
  // Throws Error kNoInput when the file cannot be opened, unless it does not exist.
  static bool IsHeld(const std::string& path);

  // For starting a program that takes the lock over: it lasts until every process that has this
  // descriptor has closed it or ended.
  int descriptor() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace renzan
