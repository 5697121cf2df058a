#pragma once

// For tests: the changes to files since they were last synced, which a power loss could undo.
// LossyFileSystem reports each change here right after (or, for Load, before) making it for real.
// Not thread-safe.
//
// The model is exactly what POSIX guarantees: fsync on a file makes its bytes durable, fsync on a
// directory the names in it. Without them, each write and each name may or may not survive, in any
// order, except that changes to the same name keep theirs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace renzan {

class Unsynced {
 public:
  struct Node;  // a file or a directory, independent of its current name
  using NodePtr = std::shared_ptr<Node>;

  Unsynced();
  ~Unsynced();

  // Loads what is at `path` into memory, so that it can be restored; null if there is nothing. Call
  // it before a change that may destroy it.
  NodePtr Load(const std::string& path);

  // `before` is what Load(path) returned before the change. Opened returns null for anything but a
  // regular file.
  NodePtr Opened(const std::string& path, const NodePtr& before);
  void Wrote(const NodePtr& file, uint64_t offset, const void* data, size_t bytes);
  void Synced(const NodePtr& file);
  void MadeDirectory(const std::string& path);
  void Removed(const std::string& path, const NodePtr& before);
  // Within one directory.
  void Renamed(const std::string& from, const std::string& to, const NodePtr& before);
  void SyncedDirectory(const std::string& path);

  // Leaves the real files and directories as a power loss might, choosing by `seed`, and starts
  // over: what is left is durable.
  void Crash(uint64_t seed);

 private:
  struct Change;

  NodePtr Find(const std::string& path);
  NodePtr FindDirectory(const std::string& path);
  void Undo(const Change& change);

  NodePtr root_;
  std::vector<Change> changes_;  // of names, not yet durable, the oldest first
};

}  // namespace renzan
