#pragma once

// manifest.json of a checkpoint: its kind and step, and every file and tensor with a checksum. It
// ends with a checksum of itself, so that every flipped bit is detected. docs/formats/checkpoint.md
// describes it for other programs.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/checkpoint/tensor_info.h"
#include "renzan/tensor/initial_values.h"

namespace renzan {

inline constexpr const char* kCheckpointManifestName = "manifest.json";

enum class CheckpointKind {
  kFull,         // holds everything
  kIncremental,  // holds the rows that changed since its base, and the dense parameters
};

// "full" or "incremental"
std::string_view Name(CheckpointKind kind);

// What the manifest says about one file.
struct CheckpointFile {
  struct Tensor {
    TensorInfo info;
    std::string sha256;  // of the values' bytes; empty if not computed

    bool operator==(const Tensor&) const = default;
  };

  // Of a file that holds only the rows of a table's block that may have been trained, as in an
  // incremental checkpoint, but in a full one: how the others begin, and the tensors with all rows.
  struct Sparse {
    InitialRows initial;
    std::vector<Tensor> tensors;

    bool operator==(const Sparse&) const = default;
  };

  std::string name;  // inside the checkpoint's directory
  uint64_t bytes = 0;
  std::string xxh128;           // of the whole file
  std::vector<Tensor> tensors;  // in the file
  std::optional<Sparse> sparse;

  // With all rows.
  const std::vector<Tensor>& whole_tensors() const { return sparse ? sparse->tensors : tensors; }

  std::string ToJson() const;
  // Throws Error kData.
  static CheckpointFile FromJson(std::string_view text);

  bool operator==(const CheckpointFile&) const = default;
};

// The full checkpoint that an incremental one builds on, in the same directory.
struct CheckpointBase {
  std::string name;
  std::string manifest_sha256;

  bool operator==(const CheckpointBase&) const = default;
};

struct CheckpointManifest {
  CheckpointKind kind = CheckpointKind::kFull;
  int64_t step = 0;
  int64_t unix_ms = 0;                     // when it was written
  std::optional<CheckpointBase> base;      // set in every incremental one
  std::string quantization;                // of an incremental one's rows: empty or "int8"
  std::string model_sha256;                // empty if the values were not hashed
  std::map<std::string, std::string> run;  // recorded by the writer; opaque here
  std::vector<CheckpointFile> files;
  std::string config;           // resolved, YAML
  std::string manifest_sha256;  // set by Parse, ignored by ToJson

  // The text of manifest.json. Throws Error kData if a string is not UTF-8.
  std::string ToJson() const;
  // Throws Error kData if the text is corrupt or describes an invalid checkpoint.
  static CheckpointManifest Parse(std::string_view text);
  // Parses `dir`/manifest.json. Throws Error kNoInput, kIo or kData, which names the file.
  static CheckpointManifest Read(const std::string& dir);

  uint64_t bytes() const;  // of all files, without the manifest
};

// The other tensors are a run's state besides the model: metric accumulators, and the residuals of
// error feedback.
constexpr std::string_view kProgressPrefix = "progress.";
constexpr std::string_view kErrorFeedbackPrefix = "error_feedback.";
bool IsModelTensor(std::string_view key);

// SHA-256 over "step <step>\n" and one line "<key> <shape> <sha256 of the values>\n" per tensor of
// the model, in the order of the keys' bytes. It does not depend on how tensors are distributed
// over files and workers. Empty if a tensor was not hashed. Throws Error kData for a duplicate key.
std::string ModelSha256(std::span<const CheckpointFile> files, int64_t step);

}  // namespace renzan
