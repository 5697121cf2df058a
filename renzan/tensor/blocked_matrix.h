#pragma once

// A matrix in blocks of columns: a block holds its columns row after row, 64 bytes each, a cache
// line and a vector of AVX-512. So matrix products read both operands sequentially, whichever of
// them is transposed, and never meet half a vector. Values are stored as float32 (16 columns in a
// block) or bfloat16 (32); functions that read and write rows convert them from and to float32.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/precision.h"

namespace renzan {

class BlockedMatrix {
 public:
  // A block's row has 16 lanes of 32 bits. A lane is a float32, or the bfloat16 of two columns, the
  // first one in the low half.
  static constexpr int64_t kLanes = 16;

  BlockedMatrix() = default;
  BlockedMatrix(int64_t rows, int64_t columns, Precision precision = Precision::kFloat32) {
    Reshape(rows, columns, precision);
  }

  // Discards the values. Allocates only if the matrix was never this large.
  void Reshape(int64_t rows, int64_t columns, Precision precision = Precision::kFloat32) {
    if (rows == rows_ && columns == columns_ && precision == precision_) return;
    rows_ = rows;
    columns_ = columns;
    precision_ = precision;
    if (data_.size() < size()) data_ = AlignedBuffer(size());
    // The columns that fill up the last block are zero. Products of bfloat16 rely on it.
    if (columns_ % block_columns() != 0)
      std::fill_n(block(num_blocks() - 1), static_cast<size_t>(block_stride()), 0.0f);
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Precision precision() const { return precision_; }
  int64_t block_columns() const { return precision_ == Precision::kFloat32 ? kLanes : 2 * kLanes; }
  int64_t num_blocks() const { return (columns_ + block_columns() - 1) / block_columns(); }
  // Lanes between the same element of neighbouring blocks: an odd number of cache lines, so that
  // the blocks of a row do not compete for a few sets of the cache.
  int64_t block_stride() const { return (rows_ | 1) * kLanes; }

  // Where block b begins.
  float* block(int64_t b) { return data_.data() + b * block_stride(); }
  const float* block(int64_t b) const { return data_.data() + b * block_stride(); }

  // All blocks, for element-wise operations on matrices of the same shape.
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  size_t size() const { return static_cast<size_t>(num_blocks() * block_stride()); }

  // Sets n values of a row from `column` on, rounding them if they are stored as bfloat16.
  void SetRow(int64_t row, int64_t column, const float* values, int64_t n) {
    if (precision_ == Precision::kBFloat16) return SetBFloat16Row(row, column, values, n);
    ForRowParts<kLanes>(row, column, n, [&](int64_t at, int64_t offset, int64_t i, int64_t count) {
      CopyPart(values + i, count, data() + at + offset);
    });
  }
  void GetRow(int64_t row, int64_t column, float* values, int64_t n) const {
    if (precision_ == Precision::kBFloat16) return GetBFloat16Row(row, column, values, n);
    ForRowParts<kLanes>(row, column, n, [&](int64_t at, int64_t offset, int64_t i, int64_t count) {
      CopyPart(data() + at + offset, count, values + i);
    });
  }

  float at(int64_t row, int64_t column) const {
    float value;
    GetRow(row, column, &value, 1);
    return value;
  }
  void Set(int64_t row, int64_t column, float value) { SetRow(row, column, &value, 1); }

  // Prefetches a row, which need not exist. Always inline, because GCC removes calls of functions
  // that only prefetch: they have no effect.
  [[gnu::always_inline]] void PrefetchRow(int64_t row) const {
    const float* first = data() + row * kLanes;
    const int64_t blocks = num_blocks(), stride = block_stride();
    for (int64_t b = 0; b < blocks; ++b) __builtin_prefetch(first + b * stride);
  }

  // Copies n values from a row of `from`, which has the same precision.
  void CopyRow(int64_t row, int64_t column, const BlockedMatrix& from, int64_t from_row,
               int64_t from_column, int64_t n) {
    const int64_t width = block_columns();
    const size_t bytes = kLanes * sizeof(float) / static_cast<size_t>(width);  // of a value
    for (int64_t i = 0, count; i < n; i += count) {
      const int64_t to = (column + i) % width, at = (from_column + i) % width;
      count = std::min({width - to, width - at, n - i});
      std::memcpy(Line((column + i) / width, row) + static_cast<size_t>(to) * bytes,
                  from.Line((from_column + i) / width, from_row) + static_cast<size_t>(at) * bytes,
                  static_cast<size_t>(count) * bytes);
    }
  }

  // Columns [column, column + n) of all rows, from and to `values` [rows, n].
  void SetColumns(int64_t column, const float* values, int64_t n);
  void GetColumns(int64_t column, float* values, int64_t n) const;

  // Copies columns [column, column + n) of `from`, which has as many rows, to those from
  // `to_column` on.
  void SetColumns(int64_t to_column, const BlockedMatrix& from, int64_t column, int64_t n) {
    for (int64_t row = 0; row < rows_; ++row) CopyRow(row, to_column, from, row, column, n);
  }

 private:
  static void CopyPart(const float* from, int64_t n, float* to) {
    if (n == kLanes) {
      std::memcpy(to, from, kLanes * sizeof(float));  // inlined, because the size is known
    } else {
      std::copy_n(from, n, to);
    }
  }
  // Calls body(the row's first lane in a block of kWidth columns, the part's first column there,
  // its first value, its length).
  template <int64_t kWidth, class Body>
  void ForRowParts(int64_t row, int64_t column, int64_t n, const Body& body) const {
    for (int64_t i = 0; i < n;) {
      const int64_t block = (column + i) / kWidth, offset = (column + i) % kWidth;
      const int64_t count = std::min(kWidth - offset, n - i);
      body(block * block_stride() + row * kLanes, offset, i, count);
      i += count;
    }
  }

  // A row of a block.
  std::byte* Line(int64_t b, int64_t row) {
    return reinterpret_cast<std::byte*>(block(b) + row * kLanes);
  }
  const std::byte* Line(int64_t b, int64_t row) const {
    return reinterpret_cast<const std::byte*>(block(b) + row * kLanes);
  }

  // Out of line, so that the functions above are inlined.
  void SetBFloat16Row(int64_t row, int64_t column, const float* values, int64_t n);
  void GetBFloat16Row(int64_t row, int64_t column, float* values, int64_t n) const;

  int64_t rows_ = 0, columns_ = 0;
  Precision precision_ = Precision::kFloat32;
  AlignedBuffer data_;
};

}  // namespace renzan
