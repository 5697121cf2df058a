#pragma once

// The system calls that write and read files, behind one replaceable object, so that tests can make
// them fail or undo what was not yet durable. Reads through memory maps bypass it. Thread-safe.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace renzan {

// This class is the real file system; others derive from it. Functions return what the
// corresponding system call returns: -1 with errno set on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The one in use: the real one, unless a ScopedFileSystem exists.
  static FileSystem& Get();

  // Creates or truncates; returns a descriptor that child programs do not inherit.
  virtual int OpenForWriting(const std::string& path);
  virtual ssize_t Write(int fd, const void* data, size_t bytes);
  virtual ssize_t WriteAt(int fd, const void* data, size_t bytes, uint64_t offset);
  // Returns a descriptor that child programs do not inherit.
  virtual int OpenForReading(const std::string& path);
  // Follows symbolic links.
  virtual int Stat(const std::string& path, struct stat* info);
  // `path` is only for tests, which choose the reads that fail by it.
  virtual ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                         uint64_t offset);
  // Asks the kernel to start writing these bytes to the disk; does not wait for them.
  virtual int StartWriteBack(int fd, uint64_t offset, uint64_t bytes);
  virtual int Sync(int fd);
  virtual int Close(int fd);

  virtual int Rename(const std::string& from, const std::string& to);
  // Of a file. Fails with EEXIST if something is at `to`.
  virtual int RenameToNew(const std::string& from, const std::string& to);
  virtual int Unlink(const std::string& path);
  virtual int MakeDirectory(const std::string& path);
  virtual int RemoveDirectory(const std::string& path);
  // Makes the names in a directory durable; fsync on a file covers only its bytes.
  virtual int SyncDirectory(const std::string& path);

  // Takes an exclusive advisory lock without waiting; fails with EWOULDBLOCK if it is held.
  virtual int TryLock(int fd);

  // Calls ReadAt until `bytes` are read or the file ends; returns how many were read, or -1 with
  // errno set.
  ssize_t ReadFully(int fd, const std::string& path, void* data, size_t bytes, uint64_t offset);

  // Removes `path` recursively with the functions above, in order of names. Symbolic links are
  // removed, not followed. Succeeds if `path` does not exist.
  int RemoveTree(const std::string& path);
};

// Makes `file_system` the one in use for the lifetime of this object. Only one thread may create or
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
