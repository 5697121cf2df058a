#pragma once

// NumPy's .npy format, version 1.0, little-endian and C order: what numpy.load reads. Arrays are
// written as streams whose number of rows is known only at the end, and read as memory maps. An
// invalid file is an Error (kData) that names it. Writers are not thread-safe; an opened array is
// immutable.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan {

enum class NpyType { kFloat32, kInt32, kInt64, kUint8, kUint64 };

template <typename T>
struct NpyTypeOf;
template <>
struct NpyTypeOf<float> {
  static constexpr NpyType kValue = NpyType::kFloat32;
};
template <>
struct NpyTypeOf<int32_t> {
  static constexpr NpyType kValue = NpyType::kInt32;
};
template <>
struct NpyTypeOf<int64_t> {
  static constexpr NpyType kValue = NpyType::kInt64;
};
template <>
struct NpyTypeOf<uint8_t> {
  static constexpr NpyType kValue = NpyType::kUint8;
};
template <>
struct NpyTypeOf<uint64_t> {
  static constexpr NpyType kValue = NpyType::kUint64;
};

// "float32", as NumPy names it.
const char* NpyTypeName(NpyType type);
std::optional<NpyType> NpyTypeFromName(std::string_view name);
int64_t NpyTypeBytes(NpyType type);

// "[3, 13]"
std::string FormatShape(std::span<const int64_t> shape);

// Headers of any shape are padded to this size, so that the header can be rewritten once the number
// of rows is known.
inline constexpr int64_t kNpyHeaderBytes = 128;

// The bytes before an array's values, of which there are kNpyHeaderBytes.
std::string NpyHeader(NpyType type, std::span<const int64_t> shape);

class NpyWriter {
 public:
  // An array [rows, columns...] whose rows are counted as they come; `columns` is empty for a
  // vector.
  NpyWriter(std::string path, NpyType type, std::vector<int64_t> columns = {});

  // Appends `rows` rows of the array's type.
  void Append(const void* data, int64_t rows);
  template <typename T>
  void AppendValue(T value) {
    Append(&value, 1);
  }

  // Writes the final header, fsyncs and closes. Without Close() the file is removed.
  void Close();

  int64_t rows() const { return rows_; }
  NpyType type() const { return type_; }
  const std::string& path() const { return file_.path(); }
  std::vector<int64_t> shape() const;

 private:
  FileWriter file_;
  NpyType type_;
  std::vector<int64_t> columns_;
  int64_t row_bytes_;
  int64_t rows_ = 0;
};

class NpyArray {
 public:
  NpyArray() = default;
  // Maps `path` and checks its header and that its size matches.
  explicit NpyArray(const std::string& path);

  NpyType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  // The size of the whole file, and where the data begins in it.
  uint64_t file_bytes() const { return file_.size(); }
  uint64_t data_offset() const { return data_offset_; }

  // All elements in C order. T must be the array's type.
  template <typename T>
  std::span<const T> values() const {
    return {static_cast<const T*>(Data(NpyTypeOf<T>::kValue)), static_cast<size_t>(num_elements_)};
  }

 private:
  const void* Data(NpyType wanted) const;

  MappedFile file_;
  NpyType type_ = NpyType::kFloat32;
  std::vector<int64_t> shape_;
  int64_t num_elements_ = 0;
  uint64_t data_offset_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace renzan
