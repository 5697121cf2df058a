#include "renzan/data/dataset/dataset_staging.h"

#include <unistd.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/storage/copy_file.h"

namespace renzan {
DatasetStaging::DatasetStaging(const std::string& path) : path_(NormalizedPath(path)) {
  Storage& storage = Storage::Of(path_);
  if (IsInStore(path_)) {
    lock_ = storage.Lock(path_, fmt::format("process {} on {}", ::getpid(), HostName()));
    // Whoever had the lock may have made the dataset meanwhile.
    if (storage.HasTree(path_, kDatasetManifestName))
      Fail(ErrorCode::kCantCreate, "{} exists: choose another name, or remove it first", path_);
    // Files that a killed import has left behind.
    storage.RemoveStaged(path_);
  }
  tree_ = storage.Stage(path_, kDatasetManifestName);
  const size_t name = tree_->location().rfind('/') + 1;
  prefix_ = tree_->location().substr(name);
  if (IsInStore(path_)) temporary_.emplace();
  directory_ = temporary_ ? temporary_->path() : tree_->location().substr(0, name - 1);
}

DatasetStaging::~DatasetStaging() {
  if (committed_ || !IsInStore(path_)) return;
  while (!upload_.finished()) upload_.WaitFor(1);
  try {
    // Removes only this import's files: another may have made the dataset meanwhile.
    Storage& storage = Storage::Of(path_);
    for (const std::string& folder : storage.Names(path_))
      if (folder.starts_with(prefix_)) storage.Remove(path_ + "/" + folder);
  } catch (const Error& error) {
    LogWarning("cannot remove the unfinished files of {}: {}", path_, error.what());
  }
}

void DatasetStaging::WaitForUpload() {
  while (!upload_.finished()) upload_.WaitFor(1);
  if (upload_.error()) throw *upload_.error();
}

void DatasetStaging::Upload(const std::string& folder) {
  if (!temporary_) return;
  WaitForUpload();
  upload_.Start([this, folder] {
    const std::string local = directory_ + "/" + folder;
    for (const Storage::File& file : Storage::Of(local).Files(local))
      CopyFile(file.path, path_ + "/" + folder + file.path.substr(local.size()));
    if (FileSystem::Get().RemoveTree(local) != 0) FailErrno(errno, "cannot remove " + local);
  });
}

void DatasetStaging::UploadFile(const std::string& name) {
  if (!temporary_) return;
  WaitForUpload();
  CopyFile(directory_ + "/" + name, path_ + "/" + name);
}

void DatasetStaging::Commit(const std::string& manifest_name, const std::string& manifest) {
  WaitForUpload();
  if (lock_) lock_->Check();
  tree_->Commit(manifest_name, manifest);
  committed_ = true;
}

}  // namespace renzan
