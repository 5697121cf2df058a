#pragma once

// A softmax over the rows of a tile, for each of its columns: what in_batch_softmax.h does between
// its matrix products. Every sum has a fixed order, which the width of the machine's vectors does
// not change. Thread-safe.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct SoftmaxTile {
  static constexpr int64_t kColumns = 64;

  // In: products [rows, kColumns] of float32. The score of row j for a column is
  // product · scale − offsets[j].
  BlockedMatrix* values;
  float scale = 1;
  const float* offsets = nullptr;  // [rows]; null: zeros
  // A row does not count for a column that has the same group.
  const int32_t* row_groups = nullptr;  // [rows]; null: each its number
  int32_t column_groups[kColumns] = {};

  // Replaces the products by scores. `logs` [kColumns]: out, the logarithms of the sums of
  // exp(score) over the rows that count, −∞ where none does.
  void LogSumExp(float* logs) const;
  // After the same products: replaces them by exp(score − log) · factor, 0 where a row does not
  // count. `logs` and `factors` [kColumns].
  void Weights(const float* logs, const float* factors) const;
};

}  // namespace renzan
