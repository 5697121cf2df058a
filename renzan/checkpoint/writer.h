#pragma once

// Writes a checkpoint: a directory that appears complete or not at all.
//
// With several workers: rank 0 makes a CheckpointWriter and tells the others its location(); every
// worker writes its files there with WriteCheckpointFile and sends the CheckpointFile, as JSON, to
// rank 0, which commits.
//
// WriteCheckpointFile may run concurrently for different files, in any threads and processes; a
// CheckpointWriter is not thread-safe.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/function_ref.h"
#include "renzan/checkpoint/manifest.h"
#include "renzan/storage/storage.h"
#include "renzan/tensor/initial_values.h"

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

// Of values as they are now.
TensorSource SourceOfCopy(std::string key, std::vector<int64_t> shape,
                          std::span<const float> values);
TensorSource SourceOfCopy(std::string key, std::vector<int64_t> shape,
                          std::span<const int64_t> values);

// A file to be written.
struct TensorFile {
  // See CheckpointFile::Sparse.
  struct Sparse {
    InitialRows initial;
    std::vector<TensorInfo> tensors;  // with all rows
    // The rows in the file, strictly ascending; valid until it is written.
    std::function<std::span<const int32_t>()> rows;
  };

  std::string name;
  std::vector<TensorSource> tensors;
  std::optional<Sparse> sparse = std::nullopt;

  uint64_t bytes() const;  // of the tensors
};

struct WriteOptions {
  // Computes every tensor's SHA-256, which model_sha256 requires.
  bool hash_tensors = false;
  // When it becomes true, writing throws Error kTempFail and the file is removed.
  const std::atomic<bool>* cancel = nullptr;
};

// Writes the file at `location` + its name. The tensors stay in their order, except that wider
// elements come first. Throws Error kCantCreate, kIo or kTempFail.
CheckpointFile WriteCheckpointFile(const std::string& location, const TensorFile& file,
                                   const WriteOptions& options);
CheckpointFile WriteCheckpointFile(const std::string& location, const std::string& name,
                                   std::span<const TensorSource> tensors,
                                   const WriteOptions& options);

class CheckpointWriter {
 public:
  // Throws Error kCantCreate when `path` exists and is not empty; in a store, Commit() does.
  explicit CheckpointWriter(const std::string& path)
      : tree_(Storage::Of(path).Stage(path, kCheckpointManifestName)) {}

  const std::string& location() const { return tree_->location(); }

  // Makes the checkpoint visible. Sets `model_sha256` if it is full and all tensors of the model
  // were hashed, and sorts the files by name. Returns manifest_sha256. Throws Error kData, and
  // nothing becomes visible, for a manifest that no reader would accept.
  std::string Commit(CheckpointManifest manifest);
  // The same; also throws, kNoInput or kData, for a checkpoint that nobody could resume from: files
  // are missing, or it is an increment that does not fit its base.
  std::string CheckAndCommit(CheckpointManifest manifest);

 private:
  std::string Commit(CheckpointManifest manifest,
                     FunctionRef<void(const CheckpointManifest&)> check);

  std::unique_ptr<StagedTree> tree_;
};

}  // namespace renzan
