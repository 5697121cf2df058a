#pragma once

// The inner loops over embedding rows, vectorised for the run's instruction set. Products and sums
// are rounded separately and taken in a fixed order, so every target gives the same bits.
// Thread-safe.

#include <cstdint>
#include <span>

#include "renzan/embedding/row_slots.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

// One-hot lookups of consecutive samples: out[i, d] = store[slots[i], d].
void GatherRows(const RowSlots& store, std::span<const int32_t> slots, float* out);

// Multi-hot lookups of consecutive samples: out[i, d] = Σ over k in [offsets[i], offsets[i + 1]),
// in that order, of store[slots[k], d], or, unless `weights` is null, of weights[k] ·
// store[slots[k], d]; zeros for an empty bag.
void PoolRows(const RowSlots& store, const int32_t* slots, std::span<const int32_t> offsets,
              float* out, const float* weights = nullptr);

// The same for rows of several row blocks; block b begins at row first[b]. A bag's lookups are
// ordered by block; row rows[k] is in slot slots[k]. The sum of each block's rows is a leaf of a
// balanced binary tree (tree_order.h), and every leaf and node is rounded by the codec `wire`. No
// bag is empty.
void PoolRowBlocks(const RowSlots& store, std::span<const int64_t> first, RowCodec wire,
                   const int32_t* rows, const int32_t* slots, std::span<const int32_t> offsets,
                   float* out, const float* weights = nullptr);

// The gradients of rows. A row's gradient is the sum of pooled[bag] over its lookups, each
// multiplied by its weight, if there are any. The lookups of one virtual worker, summed in order,
// are a leaf of a balanced binary tree over the virtual workers (tree_order.h). The inputs contain
// no -0 (ClearNegativeZeros), so neither do the sums, and a missing leaf is equivalent to a leaf of
// zeros.
struct RowGradients {
  std::span<const Lookup> lookups;           // sorted by SortByRow, with all lookups of each row
  const float* pooled = nullptr;             // [bags, dim]
  const uint16_t* virtual_worker = nullptr;  // [bags], ascending
  // If not null, the sums themselves [rows, dim], and `pooled` is not used.
  const float* sums = nullptr;
  // Unless null: a lookup's lower half is k, and it has the bag bags[k] and the weight weights[k].
  const float* weights = nullptr;
  const int32_t* bags = nullptr;
};

// to[d] += from[d]
void AddTo(int64_t n, const float* from, float* to);
// to[d] += factor · from[d]
void AddScaledTo(int64_t n, float factor, const float* from, float* to);

// -0 becomes +0.
void ClearNegativeZeros(int64_t n, float* values);

// The update of a row that was looked up, from its gradient g: g *= gradient_scale; g += l2·w; w *=
// kept; then the optimizer's step (sparse_step-inl.h), all in float32. A 16-bit row is then
// rounded stochastically, with random bits that Philox draws for (rounding_key, row of the table,
// step).
struct RowStep {
  SparseFactors optimizer;
  float gradient_scale = 1.0f, l2 = 0.0f, kept = 1.0f;
  uint64_t rounding_key = 0;
  int64_t step = 0;
  // Row r here is row `stride`·r + `offset` of the table, and its columns begin at `first_column`.
  int64_t stride = 1, offset = 0, first_column = 0;
  // For row-wise Adagrad, if these are only some of the columns: element i is Σ g² / dim of the
  // i-th distinct row, over all columns of the table.
  const float* mean_squares = nullptr;
};

// Takes one step for each row of the lookups. The state is [slots, StateFloatsPerRow]. Returns
// whether the rows and their states are finite afterwards. `slots`: the slot of each distinct row,
// in order; null if slot r holds row r.
bool UpdateRows(const RowStep& step, const RowGradients& gradients, const RowSlots& store,
                const int32_t* slots = nullptr);

// squares[i] = Σ g² of the i-th distinct row, where g is what the optimizer's step would see.
// Returns how many there are, at most lookups.size().
size_t StepSquares(const RowStep& step, const RowGradients& gradients, const RowSlots& store,
                   const int32_t* slots, float* squares);

// squares[i] = Σ g² of the i-th distinct row. Returns how many there are.
size_t RowGradientSquares(const RowGradients& gradients, int64_t dim, double* squares);

}  // namespace renzan
