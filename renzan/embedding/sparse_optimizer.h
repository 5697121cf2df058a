#pragma once

// The exact sparse update: the gradients of a row are summed in (sample, position in bag) order,
// then the optimizer is applied once per row. See kernels.h for the formulas.

#include <cstdint>
#include <span>

#include "renzan/embedding/sort_rows.h"

namespace renzan {

struct EmbeddingTable;

enum class SparseOptimizerType { kSgd, kAdagrad, kRowWiseAdagrad };

struct SparseOptimizerOptions {
  SparseOptimizerType type = SparseOptimizerType::kSgd;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
};

// 0, dim or 1.
int64_t StateFloatsPerRow(SparseOptimizerType type, int64_t dim);

// The name under which the state is saved: "", "adagrad", "rowwise_adagrad".
const char* StateName(SparseOptimizerType type);

// Updates the rows of `lookups` (sorted by SortByRow, every row's lookups complete) from the pooled
// gradients [samples, dim]. Returns whether the rows and their states are finite afterwards. Calls
// for disjoint rows may run on several threads.
bool ApplySparse(const SparseOptimizerOptions& options, double learning_rate,
                 std::span<const Lookup> lookups, const float* pooled_gradients,
                 EmbeddingTable* table);

}  // namespace renzan
