#pragma once

// Reads a full checkpoint, or an incremental one merged with its base, which must be in the same
// directory. Files are mapped, not loaded, so memory use is bounded by what the caller asks for.
// Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/checkpoint/checkpoint_files.h"
#include "renzan/checkpoint/initial_tensor.h"
#include "renzan/checkpoint/row_overlay.h"

namespace renzan {

class CheckpointReader {
 public:
  // Reads the manifests and checks that the files exist and have the right size. If `verify`, a
  // file's checksum is verified when it is first used. Throws Error kNoInput, kIo or kData;
  // also kData if the base of an incremental one is missing or not the original one.
  explicit CheckpointReader(const std::string& dir, bool verify = true);
  // Reads files whose manifest is not in the directory yet; verifies nothing.
  CheckpointReader(const std::string& dir, const CheckpointManifest& manifest);

  const std::string& dir() const { return files_->dir(); }
  int64_t step() const { return manifest().step; }
  CheckpointKind kind() const { return manifest().kind; }
  const std::string& config() const { return manifest().config; }
  const std::map<std::string, std::string>& run() const { return manifest().run; }
  const CheckpointManifest& manifest() const { return files_->manifest(); }
  // Null for a full one.
  const CheckpointManifest* base_manifest() const {
    return base_ == nullptr ? nullptr : &base_->manifest();
  }

  // The tensors as a full checkpoint would hold them.
  std::vector<std::string> keys() const;  // sorted
  bool Contains(const std::string& key) const { return tensors_.contains(key); }
  // Throws Error kData, which suggests the nearest key, if there is none.
  const TensorInfo& Info(const std::string& key) const;
  // As Info(), but the tensor must be F32, F16 or BF16.
  const TensorInfo& FloatInfo(const std::string& key) const;

  // Reads values from `first_element` (row-major) as float32, dequantized if necessary. Throws
  // Error kData: no such key, not F32, F16 or BF16, a corrupt file.
  void Read(const std::string& key, int64_t first_element, std::span<float> out);
  // Reads whole elements of any type from `first_element`, as saved; of replaced rows, the values
  // that Read() gives, in the tensor's type.
  void ReadBytes(const std::string& key, int64_t first_element, std::span<std::byte> out);
  // Throws Error kData unless there is a tensor of that shape.
  void Expect(const std::string& key, const std::vector<int64_t>& shape) const;
  // The whole tensor, whose shape must be `shape`. `out` has its size.
  void Read(const std::string& key, const std::vector<int64_t>& shape, std::span<float> out);

  // Throws Error kData unless the values of `what` are finite: older versions saved any.
  void CheckFinite(const std::string& what, bool finite) const;

  // The rows of a table that an incremental checkpoint replaces; `key` is the table's weight or one
  // of its optimizer states. Empty for a full checkpoint and for other tensors.
  std::vector<int32_t> ReplacedRows(const std::string& key);

  // If a table was saved sparsely in the full checkpoint, which is this one or its base: how its
  // rows begin, and which it holds. `key` is the table's weight.
  struct SparseTable {
    InitialRows initial;
    std::vector<int32_t> rows;
  };
  std::optional<SparseTable> FindSparseTable(const std::string& key);

  // A whole tensor of I64. Throws Error kData.
  std::vector<int64_t> ReadI64(const std::string& key);

  // The SHA-256 of all values of a tensor, if the manifest of a full checkpoint records it.
  std::string RecordedSha256(const std::string& key) const;

  // Verifies every file and tensor of this checkpoint and, if `base_too`, of its base;
  // VerifyFiles() without the initial values of rows that no file holds, which takes as long as
  // reading them.
  void VerifyAll(bool base_too = true);
  void VerifyFiles(bool base_too = true);

 private:
  // A full one.
  explicit CheckpointReader(std::unique_ptr<CheckpointFiles> files);

  void Open(bool verify);
  void OpenBase(bool verify);
  void ComposeSparse(const CheckpointFile& file);
  void ComposeTensors();
  void VerifySparse(const CheckpointFile& file);
  // Where an incremental checkpoint holds the rows that replace rows of a tensor of the base, or a
  // sparse file those that replace initial ones.
  struct Replacement {
    std::string rows_key;
    bool quantized = false;
  };
  Replacement CheckReplacement(const TensorInfo& base) const;
  const RowOverlay& Overlay(const std::string& key);

  std::unique_ptr<CheckpointFiles> files_;
  std::unique_ptr<CheckpointReader> base_;  // of an incremental one
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, InitialTensor> initial_;     // of a full one: those in sparse files
  std::map<std::string, Replacement> replacements_;  // by the key of the tensor with all rows
  std::map<std::string, RowOverlay> overlays_;       // only those used so far
};

}  // namespace renzan
