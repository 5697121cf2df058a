#pragma once

// The files in one checkpoint directory, as listed in its manifest. CheckpointReader combines those
// of a checkpoint and its base. Files are mapped when first used, those in a store copied before.
// Not thread-safe.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/checkpoint/manifest.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {

class CheckpointFiles {
 public:
  // Reads the manifest and checks that the files exist and have the right size. If `verify`, a
  // file's checksum is verified when it is first used. Throws Error kNoInput, kIo or kData.
  CheckpointFiles(std::string dir, bool verify);
  // The same with a manifest that is not in the directory yet.
  CheckpointFiles(std::string dir, CheckpointManifest manifest, bool verify);

  const std::string& dir() const { return dir_; }
  const CheckpointManifest& manifest() const { return manifest_; }

  // Every tensor, by its key. Shapes are those that this build writes, even where an earlier build
  // wrote the same values in another shape.
  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }

  // The tensor with its bytes, which are valid as long as this object; `key` is in tensors().
  // Throws Error kData for a corrupt file.
  const SafetensorsReader::Tensor& Tensor(const std::string& key);

  // Opens every file and verifies its checksum and the checksums of its tensors, where recorded.
  void VerifyAll();

 private:
  const SafetensorsReader& Open(size_t file);

  std::string dir_;
  bool verify_;
  CheckpointManifest manifest_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, size_t> file_of_;
  std::vector<std::unique_ptr<SafetensorsReader>> open_;
};

}  // namespace renzan
