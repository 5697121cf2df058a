#pragma once

// A matrix in blocks of columns: a block holds its columns row after row, 64 bytes each, a cache
// line and a vector of AVX-512. So matrix products read both operands sequentially, whichever of
// them is transposed, and never meet half a vector. Values are stored as float32 (16 columns in a
// block) or bfloat16 (32), and are float32 to those who read and write single rows.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/precision.h"

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

  // The values are lost. Allocates only if the matrix was never as large.
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
  // In lanes, between the same element of two blocks: an odd number of cache lines, so that the
  // blocks of a row do not compete for a few sets of the cache.
  int64_t block_stride() const { return (rows_ | 1) * kLanes; }

  // As lanes.
  float* block(int64_t b) { return data_.data() + b * block_stride(); }
  const float* block(int64_t b) const { return data_.data() + b * block_stride(); }

  // All blocks, for element-wise operations on matrices of the same shape.
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  size_t size() const { return static_cast<size_t>(num_blocks() * block_stride()); }

  // n values of a row, from a column on; rounded if they are stored as bfloat16.
  void SetRow(int64_t row, int64_t column, const float* values, int64_t n) {
    ForRowParts(row, column, n, [&](float* line, int64_t offset, int64_t begin, int64_t count) {
      if (precision_ == Precision::kFloat32) {
        CopyPart(values + begin, count, line + offset);
      } else {
        RoundPart(values + begin, count, reinterpret_cast<BFloat16Bits*>(line) + offset);
      }
    });
  }
  void GetRow(int64_t row, int64_t column, float* values, int64_t n) const {
    ForRowParts(
        row, column, n, [&](const float* line, int64_t offset, int64_t begin, int64_t count) {
          if (precision_ == Precision::kFloat32) {
            CopyPart(line + offset, count, values + begin);
          } else {
            WidenPart(reinterpret_cast<const BFloat16Bits*>(line) + offset, count, values + begin);
          }
        });
  }

  float at(int64_t row, int64_t column) const {
    float value;
    GetRow(row, column, &value, 1);
    return value;
  }
  void Set(int64_t row, int64_t column, float value) { SetRow(row, column, &value, 1); }

  // Starts to bring a row, which need not exist, into the cache.
  void PrefetchRow(int64_t row) const {
    const float* first = data() + row * kLanes;
    for (int64_t b = 0; b < num_blocks(); ++b) __builtin_prefetch(first + b * block_stride());
  }

  // Columns [column, column + n) of `from` become those from `to_column` on.
  void SetColumns(int64_t to_column, const BlockedMatrix& from, int64_t column, int64_t n) {
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t begin = 0; begin < n; begin += kLanes) {
        float values[kLanes];
        const int64_t count = std::min(kLanes, n - begin);
        from.GetRow(row, column + begin, values, count);
        SetRow(row, to_column + begin, values, count);
      }
    }
  }

 private:
  // Most parts are whole blocks, or those of 16 bfloat16: these loops are unrolled and vectorised.
  template <class Copy>
  static void ForPart(int64_t n, const Copy& copy) {
    if (n == 2 * kLanes) {
      for (int64_t i = 0; i < 2 * kLanes; ++i) copy(i);
    } else if (n == kLanes) {
      for (int64_t i = 0; i < kLanes; ++i) copy(i);
    } else {
      for (int64_t i = 0; i < n; ++i) copy(i);
    }
  }
  static void CopyPart(const float* from, int64_t n, float* to) {
    if (n == kLanes) {
      std::memcpy(to, from, kLanes * sizeof(float));  // inlined, because the size is known
    } else {
      std::copy_n(from, n, to);
    }
  }
  static void RoundPart(const float* from, int64_t n, BFloat16Bits* to) {
    ForPart(n, [=](int64_t i) { to[i] = ToBFloat16(from[i]); });
  }
  static void WidenPart(const BFloat16Bits* from, int64_t n, float* to) {
    ForPart(n, [=](int64_t i) { to[i] = FromBFloat16(from[i]); });
  }

  // body(the row's lanes in a block, the part's first column there, its first value, its length)
  template <class Self, class Body>
  static void ForRowParts(Self& self, int64_t row, int64_t column, int64_t n, const Body& body) {
    const int64_t width = self.block_columns();
    for (int64_t i = 0; i < n;) {
      const int64_t offset = (column + i) % width, count = std::min(width - offset, n - i);
      body(self.block((column + i) / width) + row * kLanes, offset, i, count);
      i += count;
    }
  }
  template <class Body>
  void ForRowParts(int64_t row, int64_t column, int64_t n, const Body& body) {
    ForRowParts(*this, row, column, n, body);
  }
  template <class Body>
  void ForRowParts(int64_t row, int64_t column, int64_t n, const Body& body) const {
    ForRowParts(*this, row, column, n, body);
  }

  int64_t rows_ = 0, columns_ = 0;
  Precision precision_ = Precision::kFloat32;
  AlignedBuffer data_;
};

}  // namespace renzan
