#pragma once

// Storage in directories of this machine, or of a file system that machines share. Whole or not at
// all by renames, durable by fsync (renzan/base/file). Thread-safe.

#include "renzan/storage/storage.h"

namespace renzan {

class PosixStorage : public Storage {
 public:
  std::vector<std::string> Names(const std::string& dir) override;
  std::vector<File> Files(const std::string& dir) override;
  bool IsMissing(const std::string& path) override;
  std::vector<uint64_t> Sizes(const std::string& dir, std::span<const std::string> names) override;
  std::string ReadText(const std::string& path, uint64_t max_bytes) override;
  void ReadRange(const std::string& path, uint64_t offset, std::span<std::byte> out) override;
  LocalFile Fetch(const std::string& path) override;
  std::unique_ptr<OutputFile> Create(const std::string& path) override;
  void WriteText(const std::string& path, std::string_view text) override;
  bool WriteTextIfAbsent(const std::string& path, std::string_view text) override;
  void Remove(const std::string& path) override;
  std::unique_ptr<StagedTree> Stage(const std::string& path,
                                    const std::string& manifest_name) override;
  bool HasTree(const std::string& path, const std::string& manifest_name) override;
  void RemoveTree(const std::string& path, const std::string& manifest_name) override;
  std::string SetAside(const std::string& path, const std::string& manifest_name) override;
  std::vector<std::string> Leftovers(const std::string& dir, const std::string& prefix,
                                     const std::string& manifest_name,
                                     const FilesOf& files_of) override;
  void RemoveStaged(const std::string&) override {}  // the next Stage() does
  std::unique_ptr<DirectoryLock> Lock(const std::string& dir, const std::string& owner,
                                      const Patience& patience) override;
  std::string LockOwner(const std::string& dir) override;
};

}  // namespace renzan
