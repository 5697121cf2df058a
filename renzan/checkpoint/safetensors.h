#pragma once

// Safetensors files (https://github.com/huggingface/safetensors):
//
//   8 bytes      N, little-endian
//   N bytes      JSON: {"<key>": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ..}
//                padded with spaces so that the data begin at a multiple of 8
//   the rest     the tensors' bytes, row-major, little-endian, without gaps
//
// Every tensor begins at a multiple of its element's size. Objects are not thread-safe, but any
// number of threads may read the spans of one reader.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/tensor_info.h"
#include "renzan/storage/storage.h"

namespace renzan {

inline constexpr size_t kSafetensorsAlignment = 8;  // of the data's first byte

// Writes in one pass, so tensors may be larger than memory. The destructor removes the file unless
// Close() was called.
class SafetensorsWriter {
 public:
  struct Options {
    bool hash_tensors = false;                    // SHA-256 of each; several times slower
    std::map<std::string, std::string> metadata;  // in the header
  };

  // Keys are unique; wider elements come before narrower ones. Throws Error kCantCreate.
  SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                    const Options& options);
  SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors)
      : SafetensorsWriter(path, std::move(tensors), Options()) {}
  ~SafetensorsWriter();

  // The next bytes, in the order of the tensors; a call may pass part of a tensor or span several.
  // Throws Error kIo.
  void Append(std::span<const std::byte> bytes);
  void Append(std::span<const float> values) { Append(std::as_bytes(values)); }

  // Makes the file durable; all values must have been appended. Throws Error kIo.
  void Close();

  // After Close(). Digests are in hexadecimal.
  uint64_t bytes() const;
  const std::string& file_xxh128() const;
  // In the order of the tensors; each empty without `hash_tensors`.
  const std::vector<std::string>& tensor_sha256() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Maps a file, or a copy of one that is in a store, and validates its whole header first. Throws an
// Error that names the file: kData for an invalid file, kNoInput for one that cannot be read.
class SafetensorsReader {
 public:
  struct Tensor {
    TensorInfo info;
    std::span<const std::byte> bytes;  // lives as long as the reader

    std::span<const float> f32() const { return As<float>(DType::kF32); }
    std::span<const int32_t> i32() const { return As<int32_t>(DType::kI32); }
    std::span<const int64_t> i64() const { return As<int64_t>(DType::kI64); }
    std::span<const uint8_t> u8() const { return As<uint8_t>(DType::kU8); }

   private:
    template <typename T>
    std::span<const T> As(DType dtype) const {
      CHECK_MSG(info.dtype == dtype, "tensor '{}' is {}", info.key, Name(info.dtype));
      return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
  };

  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return local_.path(); }
  // For everything else that reads the file.
  const std::string& local_path() const { return local_.local_path(); }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // In the order of the data.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is none.
  const Tensor* Find(const std::string& key) const;

 private:
  struct Entry;
  // Returns where the data begin.
  size_t ParseHeader(std::vector<Entry>& entries);

  LocalFile local_;
  MappedFile file_;
  std::vector<Tensor> tensors_;
  std::map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace renzan
