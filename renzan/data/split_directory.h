#pragma once

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/storage/storage.h"

namespace renzan {

// The directory of the two datasets of a split: it is removed again if they are not made. Those
// that are in it are found when they are made.
class SplitDirectory {
 public:
  explicit SplitDirectory(const ImportOptions& options) {
    if (options.split.empty()) return;
    // On disk, a tree is any directory: one of a killed import is used again.
    const bool in_store = IsInStore(options.output);
    const std::string manifest = options.output + "/" + kDatasetManifestName;
    if (in_store ? Storage::Of(options.output).HasTree(options.output, kDatasetManifestName)
                 : FileExists(manifest))
      Fail(ErrorCode::kCantCreate,
           "{} exists: --split makes a directory of two datasets, choose another", manifest);
    if (!in_store && !FileExists(options.output)) made_ = options.output;
  }
  // Fails if it holds anything.
  ~SplitDirectory() {
    if (!made_.empty()) FileSystem::Get().RemoveDirectory(made_);
  }
  SplitDirectory(const SplitDirectory&) = delete;
  SplitDirectory& operator=(const SplitDirectory&) = delete;

 private:
  std::string made_;
};

}  // namespace renzan
