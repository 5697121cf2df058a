#pragma once

// The files of one checkpoint's directory, as its manifest lists them: what CheckpointReader
// composes. Files are mapped when they are first used. Not thread-safe.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/checkpoint/manifest.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {

class CheckpointFiles {
 public:
  // Reads the manifest and checks that the files are there in their sizes. A file's checksum is
  // verified when the file is first used, or never without `verify`. Throws Error kNoInput or
  // kData.
  CheckpointFiles(std::string dir, bool verify);

  const std::string& dir() const { return dir_; }
  const CheckpointManifest& manifest() const { return manifest_; }

  // Every tensor, by its key.
  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }

  // The tensor with its bytes, which live as long as this object; `key` is one of tensors().
  // Throws Error kData for a corrupt file.
  const SafetensorsReader::Tensor& Tensor(const std::string& key);

  // Opens every file, and verifies its checksum and those of its tensors that have one.
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
