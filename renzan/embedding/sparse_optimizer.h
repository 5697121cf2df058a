#pragma once

// The deterministic sparse update: the gradients of a row are summed in (sample, position in bag)
// order, then the optimizer is applied once per row (optimizer_steps.h has the formulas).
//
// Weight decay applies only to the rows of a batch, once each, as in FBGEMM: a row that no sample
// looks up does not change.
//   decoupled:  w *= 1 - lr·decay before the step
//   L2:         g += decay·w, so that it also enters the optimizer's state

#include <cstdint>
#include <span>

#include "renzan/embedding/sort_rows.h"

namespace renzan {

struct EmbeddingTable;

enum class SparseOptimizerType { kSgd, kAdagrad, kRowWiseAdagrad };
enum class WeightDecayMode { kDecoupled, kL2 };

struct SparseOptimizerOptions {
  SparseOptimizerType type = SparseOptimizerType::kSgd;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double weight_decay = 0;
  WeightDecayMode weight_decay_mode = WeightDecayMode::kDecoupled;
};

struct SparseStep {
  double learning_rate = 0;
  float gradient_scale = 1;  // gradients are multiplied by it first (clipping)
  int64_t step = 0;          // of the run; rounds rows of 16 bits
};

// 0, dim or 1.
int64_t StateFloatsPerRow(SparseOptimizerType type, int64_t dim);

// The name of the state in checkpoints: "", "adagrad", "rowwise_adagrad".
const char* StateName(SparseOptimizerType type);

// Both functions take lookups sorted by SortByRow, with all lookups of each row, and the pooled
// gradients [samples, dim]. Calls for disjoint rows may run concurrently.

// Updates the rows. Returns whether they and their states are finite afterwards.
bool ApplySparse(const SparseOptimizerOptions& options, const SparseStep& step,
                 std::span<const Lookup> lookups, const float* pooled_gradients,
                 EmbeddingTable* table);

// The sum of squares of the rows' gradients.
double SquaredGradientNorm(std::span<const Lookup> lookups, const float* pooled_gradients,
                           int64_t dim);

}  // namespace renzan
