#pragma once

// The inner loops over embedding rows, vectorised for the run's instruction set. Products and sums
// are rounded separately and taken in a fixed order, so every target gives the same bits.
// Thread-safe.

#include <cstdint>
#include <span>

#include "renzan/embedding/row_storage.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/embedding/sparse_optimizer.h"

namespace renzan {

// One-hot lookups of consecutive samples: out[i, d] = rows[ids[i], d].
void GatherRows(const RowStorage& rows, std::span<const int32_t> ids, float* out);

// Multi-hot lookups of consecutive samples: out[i, d] = Σ over k in [offsets[i], offsets[i + 1]),
// in that order, of rows[ids[k], d]; zeros for an empty bag. With `mean`, times 1 / its length.
void PoolRows(const RowStorage& rows, const int32_t* ids, std::span<const int32_t> offsets,
              bool mean, float* out);

// What happens to a row that was looked up, from its summed gradient g: g *= gradient_scale;
// g += l2·w; w *= kept; then the optimizer's step (optimizer_steps-inl.h), all in float32. A row of
// 16 bits is then rounded stochastically, with what Philox draws for (rounding_key, row, step).
struct RowStep {
  SparseOptimizerType optimizer;
  float lr, epsilon;
  float gradient_scale = 1.0f, l2 = 0.0f, kept = 1.0f;
  uint64_t rounding_key = 0;
  int64_t step = 0;
};

// Takes one step for each row of `lookups`, which are sorted by SortByRow. Its gradient is the sum
// of its lookups' pooled gradients [samples, dim]. `state`: [rows, dim] for Adagrad, [rows] for
// row-wise Adagrad. Returns whether the rows and their states are finite afterwards.
bool UpdateRows(const RowStep& step, std::span<const Lookup> lookups, const float* pooled_gradients,
                RowStorage* rows, float* state);

// squares[i] = Σ g² of the i-th distinct row of `lookups`. Returns how many there are, at most
// lookups.size().
size_t RowGradientSquares(std::span<const Lookup> lookups, const float* pooled_gradients,
                          int64_t dim, double* squares);

}  // namespace renzan
