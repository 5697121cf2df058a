#pragma once

// A saved model: a directory that appears whole or not at all.
//
//   manifest.json                     step, configuration, every file and tensor with its SHA-256
//   dense.safetensors                 dense parameters and their optimizer states
//   table.<feature>.safetensors       one per embedding table
//
// Keys are logical ("bottom.0.weight", "bottom.0.weight/adagrad", "embedding.C1.weight"): no trace
// of how many workers wrote it. docs/formats/model.md describes the files for other programs.
//
// Saving with several workers: rank 0 makes a ModelWriter; after a barrier every worker writes its
// files with WriteModelFile(ModelWriter::StagingPath(dir), ...) and sends the ModelFile, as JSON,
// to rank 0, which commits. Nothing here is thread-safe, except that WriteModelFile may run for
// different files at once.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/file.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {

struct NamedTensor {
  std::string key;
  std::vector<int64_t> shape;
  std::span<const float> values;
};

// What the manifest says about one file.
struct ModelFile {
  struct Tensor {
    std::string key;
    std::vector<int64_t> shape;
    std::string sha256;  // of the values' bytes

    bool operator==(const Tensor&) const = default;
  };

  std::string name;  // inside the model's directory
  uint64_t bytes = 0;
  std::string sha256;
  std::vector<Tensor> tensors;

  std::string ToJson() const;
  // Throws Error kData.
  static ModelFile FromJson(std::string_view text);

  bool operator==(const ModelFile&) const = default;
};

// Writes `staging`/`name`. Throws Error kCantCreate or kIo.
ModelFile WriteModelFile(const std::string& staging, const std::string& name,
                         std::span<const NamedTensor> tensors);

class ModelWriter {
 public:
  // Creates the staging directory. Throws Error kCantCreate when `dir` exists and is not empty.
  explicit ModelWriter(const std::string& dir) : staged_(dir) {}

  static std::string StagingPath(const std::string& dir) {
    return StagedDirectory::StagingPath(dir);
  }
  const std::string& staging() const { return staged_.staging(); }

  // Writes the manifest and lets the directory appear. `config` is the resolved configuration
  // (YAML). Returns the model's SHA-256. Throws Error kData when two files hold the same key.
  std::string Commit(std::vector<ModelFile> files, int64_t step, const std::string& config);

 private:
  StagedDirectory staged_;
};

// SHA-256 over "step <step>\n" and one line "<key> <shape> <sha256 of the values>\n" per tensor, in
// the order of the keys' bytes. It knows nothing of files, so it does not depend on who wrote what.
std::string ModelSha256(std::span<const ModelFile> files, int64_t step);

class ModelReader {
 public:
  // Reads the manifest and checks that the files are there in their sizes. A file's checksum is
  // verified when the file is first used, or never without `verify`. Throws Error kNoInput or
  // kData.
  explicit ModelReader(const std::string& dir, bool verify = true);
  ~ModelReader();
  ModelReader(ModelReader&&) noexcept;

  const std::string& dir() const { return dir_; }
  int64_t step() const { return step_; }
  const std::string& config() const { return config_; }
  const std::string& model_sha256() const { return model_sha256_; }
  const std::vector<ModelFile>& files() const { return files_; }
  std::vector<std::string> keys() const;  // sorted
  bool Contains(const std::string& key) const { return index_.contains(key); }
  // What the manifest says of a tensor, without opening its file.
  const ModelFile::Tensor& Info(const std::string& key) const;

  // The values live as long as the reader. Throws Error kData: no such key, a damaged file.
  NamedTensor Tensor(const std::string& key);
  // The same, and the shape must be `shape`.
  std::span<const float> Tensor(const std::string& key, const std::vector<int64_t>& shape);

  // Opens and verifies every file.
  void VerifyAll();

 private:
  struct Place {
    size_t file, tensor;
  };
  void ParseManifest(const std::string& text);
  const Place& Find(const std::string& key) const;
  const SafetensorsReader& Open(size_t file);

  std::string dir_;
  bool verify_;
  int64_t step_ = 0;
  std::string config_;
  std::string model_sha256_;
  std::vector<ModelFile> files_;
  std::map<std::string, Place> index_;
  std::vector<std::unique_ptr<SafetensorsReader>> open_;
};

}  // namespace renzan
