#pragma once

// A float32 matrix in blocks of 16 columns: a block holds its columns row after row, 64 bytes each,
// a cache line and a vector of AVX-512. So matrix products read both operands sequentially,
// whichever of them is transposed, and never meet half a vector.
//
// The columns that fill up the last block hold arbitrary values: nothing may depend on them.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "renzan/base/aligned_buffer.h"

namespace renzan {

class BlockedMatrix {
 public:
  static constexpr int64_t kBlock = 16;

  BlockedMatrix() = default;
  BlockedMatrix(int64_t rows, int64_t columns) { Reshape(rows, columns); }

  // The values are lost. Allocates only if the matrix was never as large.
  void Reshape(int64_t rows, int64_t columns) {
    rows_ = rows;
    columns_ = columns;
    if (data_.size() < size()) data_ = AlignedBuffer(size());
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t num_blocks() const { return (columns_ + kBlock - 1) / kBlock; }
  // Between the same element of two blocks: an odd number of cache lines, so that the blocks of a
  // row do not compete for a few sets of the cache.
  int64_t block_stride() const { return (rows_ | 1) * kBlock; }

  float* block(int64_t b) { return data_.data() + b * block_stride(); }
  const float* block(int64_t b) const { return data_.data() + b * block_stride(); }
  float& at(int64_t row, int64_t column) { return block(column / kBlock)[Offset(row, column)]; }
  float at(int64_t row, int64_t column) const {
    return block(column / kBlock)[Offset(row, column)];
  }

  // All blocks, for element-wise operations on matrices of the same shape.
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  size_t size() const { return static_cast<size_t>(num_blocks() * block_stride()); }

  // n values of a row, from a column on.
  void SetRow(int64_t row, int64_t column, const float* values, int64_t n) {
    ForRowParts(row, column, n, [&](int64_t block, int64_t offset, int64_t begin, int64_t count) {
      CopyPart(values + begin, count, this->block(block) + offset);
    });
  }
  void GetRow(int64_t row, int64_t column, float* values, int64_t n) const {
    ForRowParts(row, column, n, [&](int64_t block, int64_t offset, int64_t begin, int64_t count) {
      CopyPart(this->block(block) + offset, count, values + begin);
    });
  }

  // Starts to bring a row, which need not exist, into the cache.
  void PrefetchRow(int64_t row) const {
    const float* first = data() + row * kBlock;
    for (int64_t b = 0; b < num_blocks(); ++b) __builtin_prefetch(first + b * block_stride());
  }

  // Columns [column, column + n) of `from` become those from `to_column` on.
  void SetColumns(int64_t to_column, const BlockedMatrix& from, int64_t column, int64_t n) {
    for (int64_t row = 0; row < rows_; ++row)
      ForRowParts(row, column, n, [&](int64_t block, int64_t offset, int64_t begin, int64_t count) {
        SetRow(row, to_column + begin, from.block(block) + offset, count);
      });
  }

 private:
  static int64_t Offset(int64_t row, int64_t column) { return row * kBlock + column % kBlock; }

  static void CopyPart(const float* from, int64_t n, float* to) {
    if (n == kBlock) {
      std::memcpy(to, from, kBlock * sizeof(float));  // inlined, because the size is known
    } else {
      std::copy_n(from, n, to);
    }
  }

  template <class Body>
  static void ForRowParts(int64_t row, int64_t column, int64_t n, const Body& body) {
    for (int64_t i = 0; i < n;) {
      const int64_t count = std::min(kBlock - (column + i) % kBlock, n - i);
      body((column + i) / kBlock, Offset(row, column + i), i, count);
      i += count;
    }
  }

  int64_t rows_ = 0, columns_ = 0;
  AlignedBuffer data_;
};

}  // namespace renzan
