#pragma once

// Writes a checkpoint: a directory that appears complete or not at all.
//
// With several workers: rank 0 makes a CheckpointWriter; after a barrier every worker writes its
// files with WriteCheckpointFile(CheckpointWriter::StagingPath(path), ...) and sends the
// CheckpointFile, as JSON, to rank 0, which commits.
//
// WriteCheckpointFile may run concurrently for different files, in any threads and processes; a
// CheckpointWriter is not thread-safe.

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/manifest.h"

namespace renzan {

// A tensor whose bytes are fetched while it is written.
struct TensorSource {
  std::string key;
  std::vector<int64_t> shape;
  DType dtype = DType::kF32;
  // Fills `out` with the tensor's bytes from `offset_bytes`. Offset and size are multiples of
  // the element's size; pieces have at most 1 MiB and come in order, each byte once.
  std::function<void(size_t offset_bytes, std::span<std::byte> out)> read;
};

// `values` must stay valid until the file is written.
TensorSource SourceOf(std::string key, std::vector<int64_t> shape, std::span<const float> values);
TensorSource SourceOf(std::string key, std::vector<int64_t> shape, std::span<const int32_t> values);
TensorSource SourceOf(std::string key, std::vector<int64_t> shape, std::span<const int64_t> values);

struct WriteOptions {
  // Computes every tensor's SHA-256, which model_sha256 requires.
  bool hash_tensors = false;
  // When it becomes true, writing throws Error kTempFail and the file is removed.
  const std::atomic<bool>* cancel = nullptr;
};

// Writes `staging`/`name`. The tensors stay in their order, except that wider elements come first.
// Throws Error kCantCreate, kIo or kTempFail.
CheckpointFile WriteCheckpointFile(const std::string& staging, const std::string& name,
                                   std::span<const TensorSource> tensors,
                                   const WriteOptions& options);

class CheckpointWriter {
 public:
  // Creates the staging directory. Throws Error kCantCreate when `path` exists and is not empty.
  explicit CheckpointWriter(const std::string& path) : staged_(path) {}

  static std::string StagingPath(const std::string& path) {
    return StagedDirectory::StagingPath(path);
  }
  const std::string& staging() const { return staged_.staging(); }

  // Sets `model_sha256` if the checkpoint is full and all tensors of the model were hashed, and
  // sorts the files by name. Returns manifest_sha256. Throws Error kData for a manifest that no
  // reader would accept.
  std::string WriteManifest(CheckpointManifest manifest);
  // Makes the directory visible.
  void Publish() { staged_.Commit(); }
  // Both.
  std::string Commit(CheckpointManifest manifest);

 private:
  StagedDirectory staged_;
};

}  // namespace renzan
