#pragma once

// Where the files of a dataset are written before the dataset appears. On disk, that is a directory
// beside it, which is then renamed. For a store, it is a temporary directory, whose folders are
// uploaded in the background and removed. Not thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "renzan/base/background_task.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/storage/storage.h"

namespace renzan {

class DatasetStaging {
 public:
  // Throws Error kCantCreate if there is a dataset at `path`, or on disk anything but an empty
  // directory; in a store also if another process is making one there.
  explicit DatasetStaging(const std::string& path);
  // Removes what was not committed.
  ~DatasetStaging();
  DatasetStaging(const DatasetStaging&) = delete;
  DatasetStaging& operator=(const DatasetStaging&) = delete;

  // Where files are made.
  const std::string& directory() const { return directory_; }
  // The path of the dataset.
  const std::string& path() const { return path_; }
  // A prefix of the names of all files and folders, except the last file's.
  const std::string& prefix() const { return prefix_; }

  // To be called when a folder is complete. Throws the Error of an earlier upload.
  void Upload(const std::string& folder);
  // The same for a file beside the folders.
  void UploadFile(const std::string& name);
  // Writes the last file, which makes the dataset appear.
  void Commit(const std::string& manifest_name, const std::string& manifest);

 private:
  void WaitForUpload();

  const std::string path_;
  std::unique_ptr<DirectoryLock> lock_;  // in a store only
  std::unique_ptr<StagedTree> tree_;
  std::optional<TemporaryDirectory> temporary_;  // for a store only
  std::string directory_, prefix_;
  bool committed_ = false;
  BackgroundTask upload_;  // last, so that it ends before the members it uses
};

// Calls `make`, which makes a dataset at `path`. If a local disk is full, the Error names it,
// because the user has named only a store.
template <typename Make>
auto MakingDataset(const std::string& path, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    if (!IsInStore(path) || !error.is_full_disk()) throw;
    throw error.WithContext(
        fmt::format("{} is made on a local disk first (set TMPDIR to a larger directory)", path));
  }
}

}  // namespace renzan
