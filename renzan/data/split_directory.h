#pragma once

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/storage/storage.h"

namespace renzan {

// The directory of the two datasets of a split: it is removed again if they are not made.
class SplitDirectory {
 public:
  explicit SplitDirectory(const ImportOptions& options) {
    if (options.split.empty()) return;
    if (Storage::Of(options.output).HasTree(options.output, kDatasetManifestName))
      Fail(ErrorCode::kCantCreate,
           "{} is a dataset: --split makes a directory of two, choose another", options.output);
    if (!IsInStore(options.output) && !FileExists(options.output)) made_ = options.output;
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
