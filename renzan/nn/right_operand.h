#pragma once

// The right operand [k, n] of many products, such as a weight: rounded to the product's precision
// once, and stored in the layout that the products of the chosen instruction set (isa.h) read.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class RightOperand {
 public:
  enum class Layout {
    kFloat32,  // [k, n]
    kWidened,  // bfloat16 as float32, k padded to an even number, rows 2i and 2i + 1 swapped
    kPairs,    // [k / 2, n]: a lane is rows 2i (low half) and 2i + 1 of a column, as bfloat16
    kTiles,    // the same, k padded to a multiple of 32
  };

  RightOperand(int64_t rows, int64_t columns, Precision precision);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return lanes_.columns(); }
  Layout layout() const { return layout_; }
  bool in_pairs() const { return layout_ == Layout::kPairs || layout_ == Layout::kTiles; }
  Precision precision() const {
    return layout_ == Layout::kFloat32 ? Precision::kFloat32 : Precision::kBFloat16;
  }
  const BlockedMatrix& lanes() const { return lanes_; }
  BlockedMatrix& lanes() { return lanes_; }

  // Sets one of num_blocks() blocks of columns from the row-major values [rows, columns] of the
  // whole matrix, or of its transpose. Different blocks may be set concurrently.
  int64_t num_blocks() const { return lanes_.num_blocks(); }
  void SetBlock(int64_t block, const float* values);
  void SetBlockOfTransposed(int64_t block, const float* values);

 private:
  // Sets up to 16 rows of a block from values [16, 16], zero where the matrix has none.
  void SetRows(int64_t block, int64_t first_row, const float* values);

  int64_t rows_;
  Layout layout_;
  BlockedMatrix lanes_;
};

}  // namespace renzan
