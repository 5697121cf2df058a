#pragma once

// Blocked matrices from and to row-major values, for tests.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

inline BlockedMatrix Blocked(std::span<const float> values, int64_t rows, int64_t columns,
                             Precision precision = Precision::kFloat32) {
  BlockedMatrix matrix(rows, columns, precision);
  for (int64_t row = 0; row < rows; ++row)
    matrix.SetRow(row, 0, values.data() + row * columns, columns);
  return matrix;
}

inline std::vector<float> RowMajor(const BlockedMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows() * matrix.columns()));
  for (int64_t row = 0; row < matrix.rows(); ++row)
    matrix.GetRow(row, 0, values.data() + row * matrix.columns(), matrix.columns());
  return values;
}

// With memory of its own, which a copied BlockedMatrix does not have.
inline BlockedMatrix CopyOf(const BlockedMatrix& matrix) {
  return Blocked(RowMajor(matrix), matrix.rows(), matrix.columns(), matrix.precision());
}

}  // namespace renzan
