#pragma once

// Safetensors files (https://github.com/huggingface/safetensors) of float32 tensors:
//
//   8 bytes      N, little-endian
//   N bytes      JSON: {"<key>": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]},
//   ...}
//                padded with spaces, so that the data begin at a multiple of 8
//   the rest     the tensors' bytes, row-major, without gaps
//
// Objects are not thread-safe, but any number of threads may read the spans of one reader.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/file.h"

namespace renzan {

struct TensorInfo {
  std::string key;
  std::vector<int64_t> shape;  // empty for a single value

  bool operator==(const TensorInfo&) const = default;
};

// The product of the dimensions.
int64_t NumElements(const std::vector<int64_t>& shape);

// "[4, 2]"
std::string ShapeText(const std::vector<int64_t>& shape);

// Writes in one pass, so a tensor may be larger than memory. The file is removed again unless
// Close() is reached.
class SafetensorsWriter {
 public:
  // Keys are unique. Throws Error kCantCreate.
  SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();

  // The next values, in the order of the tensors; a call may hold a part of one or span several.
  void Append(std::span<const float> values);

  // Flushes and fsyncs; all values must have been given. Throws Error kIo.
  void Close();

  // After Close(). Digests are SHA-256 in hexadecimal.
  uint64_t bytes() const;
  const std::string& file_sha256() const;
  const std::vector<std::string>& tensor_sha256() const;  // in the order of the tensors

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Maps a file and checks everything in its header before any value is used. A file that is not as
// described above is an Error kData that names it; one that cannot be read, kNoInput.
class SafetensorsReader {
 public:
  struct Tensor {
    TensorInfo info;
    std::span<const float> values;  // lives as long as the reader
  };

  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // In the order of the data.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is none.
  const Tensor* Find(const std::string& key) const;

 private:
  std::string path_;
  MappedFile file_;
  std::vector<Tensor> tensors_;
  std::map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace renzan
