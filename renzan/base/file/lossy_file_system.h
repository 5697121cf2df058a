#pragma once

// For tests: a FileSystem that works on the real one and tracks what a power loss could undo, like
// LevelDB's FaultInjectionTestEnv. Thread-safe.
//
//   LossyFileSystem disk;
//   {
//     ScopedFileSystem scope(disk);
//     disk.PowerOffAfter(3);
//     try { code under test } catch (const Error&) {}
//   }
//   disk.Crash(seed);  // the real directory is now as the power loss left it
//
// Files are kept in memory from their first change on: use small ones. Changes that bypass it
// (streams, other processes) are not seen and must not affect files and directories written through
// it. Renames between directories fail with EXDEV: no writer here needs them.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "renzan/base/file/file_system.h"
#include "renzan/base/file/unsynced.h"

namespace renzan {

class LossyFileSystem : public FileSystem {
 public:
  // The next `count` operations succeed; all later ones fail with EIO and change nothing, as if the
  // program had died. (Close still closes the descriptor.)
  void PowerOffAfter(uint64_t count);

  // After `bytes` more bytes, writes fail with `error`, as on a full disk; the write that crosses
  // the limit is a short write.
  void FailWritesAfter(uint64_t bytes, int error);
  void Heal();

  // Changes the real files and directories to what a power loss at this moment might leave: fsynced
  // data survives; `seed` chooses what else survives and how. Power is on again afterwards. Objects
  // that were writing must have been destroyed: they are part of the program that died.
  void Crash(uint64_t seed);

  // Operations so far, including failed ones.
  uint64_t operations() const;

  int OpenForWriting(const std::string& path) override;
  ssize_t Write(int fd, const void* data, size_t bytes) override;
  ssize_t WriteAt(int fd, const void* data, size_t bytes, uint64_t offset) override;
  int StartWriteBack(int fd, uint64_t offset, uint64_t bytes) override;
  int Sync(int fd) override;
  int Close(int fd) override;
  int Rename(const std::string& from, const std::string& to) override;
  int RenameToNew(const std::string& from, const std::string& to) override;
  int Unlink(const std::string& path) override;
  int MakeDirectory(const std::string& path) override;
  int RemoveDirectory(const std::string& path) override;
  int SyncDirectory(const std::string& path) override;

 private:
  struct OpenFile {
    Unsynced::NodePtr node;
    uint64_t position = 0;
  };

  bool Powered();
  bool HasRoom(size_t* bytes);

  mutable std::mutex mutex_;
  Unsynced unsynced_;
  std::map<int, OpenFile> open_;
  uint64_t operations_ = 0;
  std::optional<uint64_t> power_off_at_;  // in operations_
  std::optional<uint64_t> room_;          // bytes that can still be written
  int room_error_ = 0;
};

}  // namespace renzan
