#pragma once

// The system calls through which files are written and read, as one replaceable object, so that
// tests can make them fail or undo what was not yet durable. What is read through a memory map does
// not come through here. Callable from several threads at once.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace renzan {

// This class is the machine's own file system; other ones derive from it. Functions return what the
// system call of that kind returns: -1 with errno set when it fails.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The one in use: the machine's own, unless a ScopedFileSystem lives.
  static FileSystem& Get();

  // Creates or truncates; returns a descriptor that programs started by us do not inherit.
  virtual int OpenForWriting(const std::string& path);
  virtual ssize_t Write(int fd, const void* data, size_t bytes);
  virtual ssize_t WriteAt(int fd, const void* data, size_t bytes, uint64_t offset);
  // `path` is the file's name, by which tests choose the reads that fail.
  virtual ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                         uint64_t offset);
  // Asks the kernel to start writing these bytes to the disk; does not wait for them.
  virtual int StartWriteBack(int fd, uint64_t offset, uint64_t bytes);
  virtual int Sync(int fd);
  virtual int Close(int fd);

  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Unlink(const std::string& path);
  virtual int MakeDirectory(const std::string& path);
  virtual int RemoveDirectory(const std::string& path);
  // Makes the names in a directory durable. fsync on a file does that for its bytes only.
  virtual int SyncDirectory(const std::string& path);

  // Takes an exclusive advisory lock or fails at once with EWOULDBLOCK.
  virtual int TryLock(int fd);

  // ReadAt until `bytes` are there or the file ends: how many there are, or -1 with errno set.
  ssize_t ReadFully(int fd, const std::string& path, void* data, size_t bytes, uint64_t offset);

  // Removes `path` and all below it, by the functions above, in order of names. Symbolic links are
  // removed, not followed. A `path` that does not exist is no failure.
  int RemoveTree(const std::string& path);
};

// Makes `file_system` the one in use as long as this object lives. Only one thread may make or
// destroy such objects, and not while files are being written.
class ScopedFileSystem {
 public:
  explicit ScopedFileSystem(FileSystem& file_system);
  ~ScopedFileSystem();
  ScopedFileSystem(const ScopedFileSystem&) = delete;
  ScopedFileSystem& operator=(const ScopedFileSystem&) = delete;

 private:
  FileSystem* previous_;
};

}  // namespace renzan
