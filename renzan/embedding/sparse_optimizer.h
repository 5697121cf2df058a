#pragma once

// The deterministic sparse update: the gradients of a row are summed over each virtual worker's
// samples in order, these sums by a balanced binary tree (kernels.h), then the optimizer is applied
// once per row (optimizer_steps-inl.h has the formulas).
//
// Weight decay applies only to the rows of a batch, once each, as in FBGEMM: a row that no sample
// looks up does not change, unless all rows take every step (idle_rows.h).
//   decoupled:  w *= 1 - lr·decay before the step
//   L2:         g += decay·w, so that it also enters the optimizer's state

#include <cstddef>
#include <cstdint>
#include <span>

#include "renzan/embedding/sort_rows.h"
#include "renzan/optim/sparse_optimizers.h"

namespace renzan {

struct EmbeddingShard;
struct RowGradients;

struct SparseStep {
  double learning_rate = 0;    // times the table's factor
  float gradient_scale = 1;    // gradients are multiplied by it first (clipping)
  int64_t step = 0;            // of the run; keys the rounding of 16-bit rows
  int64_t optimizer_step = 0;  // how many steps the optimizer's states have seen
};

// For pinned rows of one block of a shard. Calls for disjoint rows may run concurrently.

// Takes the steps that the rows have missed (idle_rows.h). They are distinct.
void CatchUpRows(std::span<const int32_t> rows, size_t block, EmbeddingShard* shard);
// The same for the rows of a batch that are in the block: those of sorted lookups.
void CatchUpRowsOf(std::span<const Lookup> sorted, size_t block, EmbeddingShard* shard);
// The step that rows of other batches than this one miss.
IdleStep IdleStepOf(const SparseOptimizerOptions& options, const SparseStep& step,
                    const EmbeddingShard& shard);

// Updates the rows, which must have caught up. Returns whether they and their states are finite
// afterwards. `mean_squares`: as in RowStep, if row-wise Adagrad's table has several column blocks.
bool ApplySparse(const SparseOptimizerOptions& options, const SparseStep& step,
                 const RowGradients& gradients, const float* mean_squares, size_t block,
                 EmbeddingShard* shard);

// The squares from which mean_squares are computed (StepSquares). Returns how many there are.
size_t SquaresForStep(const SparseOptimizerOptions& options, const SparseStep& step,
                      const RowGradients& gradients, size_t block, const EmbeddingShard& shard,
                      float* squares);

// The sum of squares of the rows' gradients [dim].
double SquaredGradientNorm(const RowGradients& gradients, int64_t dim);

}  // namespace renzan
