#pragma once

// For tests: what a loss of power could still take back of the changes made to files since they
// were last synced. LossyFileSystem reports each change here right after (or, for Load, before) it
// has made it for real. Not thread-safe.
//
// The model is what POSIX promises and no more: fsync on a file keeps its bytes, fsync on a
// directory keeps the names in it. Without one, each write and each name may or may not survive, in
// any order, except that changes to one and the same name keep theirs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace renzan {

class Unsynced {
 public:
  struct Node;  // a file or a directory, whatever its name is at the moment
  using NodePtr = std::shared_ptr<Node>;

  Unsynced();
  ~Unsynced();

  // What is at `path` now, with its content in memory, so that it can be put back; null when there
  // is nothing. Call it before a change that may destroy it.
  NodePtr Load(const std::string& path);

  // `before` is what Load(path) returned before the change. Opened returns null for what is not a
  // regular file: there is nothing to lose.
  NodePtr Opened(const std::string& path, const NodePtr& before);
  void Wrote(const NodePtr& file, uint64_t offset, const void* data, size_t bytes);
  void Synced(const NodePtr& file);
  void MadeDirectory(const std::string& path);
  void Removed(const std::string& path, const NodePtr& before);
  // Within one directory.
  void Renamed(const std::string& from, const std::string& to, const NodePtr& before);
  void SyncedDirectory(const std::string& path);

  // Leaves the real files and directories as a loss of power might, by choices drawn from `seed`,
  // and begins anew: what is left is durable.
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
