#pragma once

// For tests: a FileSystem that works on the real one and knows what a loss of power could take
// back, in the manner of leveldb's FaultInjectionTestEnv. Thread-safe.
//
//   LossyFileSystem disk;
//   {
//     ScopedFileSystem scope(disk);
//     disk.PowerOffAfter(3);
//     try { code under test } catch (const Error&) {}
//   }
//   disk.Crash(seed);  // the real directory now is what the power loss left
//
// Files are kept in memory from their first change on: use small ones. What changes files past it
// (streams, other processes) is not seen and must keep away from files and directories written
// through it. Renames between two directories are refused with EXDEV: no writer here needs them.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "renzan/base/file_system.h"
#include "renzan/base/unsynced.h"

namespace renzan {

class LossyFileSystem : public FileSystem {
 public:
  // The next `count` operations still succeed, all later ones fail with EIO and change nothing, as
  // if the program had died. (Close still closes the descriptor.)
  void PowerOffAfter(uint64_t count);

  // After `bytes` more bytes, writes fail with `error`, like those to a full disk; the one that
  // crosses the limit is cut short.
  void FailWritesAfter(uint64_t bytes, int error);
  void Heal();

  // Makes the real files and directories what a loss of power at this moment might leave: what was
  // fsynced is there; of the rest `seed` chooses what survived and how. Power is on again
  // afterwards. Objects that were writing must be gone: they are part of the program that died.
  void Crash(uint64_t seed);

  // Operations so far, also the failed ones.
  uint64_t operations() const;

  int OpenForWriting(const std::string& path) override;
  ssize_t Write(int fd, const void* data, size_t bytes) override;
  ssize_t WriteAt(int fd, const void* data, size_t bytes, uint64_t offset) override;
  int StartWriteBack(int fd, uint64_t offset, uint64_t bytes) override;
  int Sync(int fd) override;
  int Close(int fd) override;
  int Rename(const std::string& from, const std::string& to) override;
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
  std::optional<uint64_t> room_;          // bytes that writes may still take
  int room_error_ = 0;
};

}  // namespace renzan
