#pragma once

// The rows of an embedding table [rows, dim], in float32 or in 16 bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/error.h"
#include "renzan/base/float_codec.h"

namespace renzan {

class RowStorage {
 public:
  // Zeros. Throws kOsError if there is not enough memory.
  RowStorage(FloatType type, int64_t rows, int64_t dim);

  FloatType type() const { return type_; }
  int64_t dim() const { return dim_; }
  size_t size() const { return size_; }  // values
  int64_t row_bytes() const {
    return static_cast<int64_t>(EncodedBytes(type_, static_cast<size_t>(dim_)));
  }
  std::span<std::byte> bytes() {
    return std::as_writable_bytes(buffer_.span()).first(EncodedBytes(type_, size_));
  }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(buffer_.span()).first(EncodedBytes(type_, size_));
  }
  // Of float32 rows.
  std::span<float> floats() {
    CHECK(type_ == FloatType::kFloat32);
    return buffer_.span();
  }
  std::span<const float> floats() const {
    CHECK(type_ == FloatType::kFloat32);
    return buffer_.span();
  }

  // Of the values [first, first + size).
  bool AllFinite(size_t first, size_t size) const;

  // Values from `first` on, as float32; Set() rounds to the nearest. Threads may call them
  // concurrently for different values.
  void Get(size_t first, std::span<float> values) const;
  void Set(size_t first, std::span<const float> values);

 private:
  FloatType type_;
  int64_t dim_;
  size_t size_;
  AlignedBuffer buffer_;
};

}  // namespace renzan
