#include "renzan/embedding/sparse_optimizer.h"

#include <vector>

#include "renzan/embedding/kernels.h"
#include "renzan/embedding/table.h"
#include "renzan/optim/gradient_norm.h"

namespace renzan {

int64_t StateFloatsPerRow(SparseOptimizerType type, int64_t dim) {
  switch (type) {
    case SparseOptimizerType::kSgd:
      return 0;
    case SparseOptimizerType::kAdagrad:
      return dim;
    case SparseOptimizerType::kRowWiseAdagrad:
      return 1;
  }
  return 0;
}

const char* StateName(SparseOptimizerType type) {
  switch (type) {
    case SparseOptimizerType::kSgd:
      return "";
    case SparseOptimizerType::kAdagrad:
      return "adagrad";
    case SparseOptimizerType::kRowWiseAdagrad:
      return "rowwise_adagrad";
  }
  return "";
}

bool ApplySparse(const SparseOptimizerOptions& options, const SparseStep& step,
                 std::span<const Lookup> lookups, const float* pooled_gradients,
                 EmbeddingTable* table) {
  for (size_t i = 0; i < lookups.size(); ++i)
    if (i == 0 || RowOf(lookups[i]) != RowOf(lookups[i - 1]))
      table->BeforeUpdate(RowOf(lookups[i]));
  RowStep row_step{.optimizer = options.type,
                   .lr = static_cast<float>(step.learning_rate),
                   .epsilon = static_cast<float>(options.epsilon),
                   .gradient_scale = step.gradient_scale,
                   .rounding_key = table->rounding_key,
                   .step = step.step};
  if (options.weight_decay_mode == WeightDecayMode::kL2) {
    row_step.l2 = static_cast<float>(options.weight_decay);
  } else {
    row_step.kept = static_cast<float>(1 - step.learning_rate * options.weight_decay);
  }
  return UpdateRows(row_step, lookups, pooled_gradients, &table->weights, table->state.data());
}

double SquaredGradientNorm(std::span<const Lookup> lookups, const float* pooled_gradients,
                           int64_t dim) {
  thread_local std::vector<double> rows;
  rows.resize(lookups.size());
  return TreeSum(
      std::span(rows).first(RowGradientSquares(lookups, pooled_gradients, dim, rows.data())));
}

}  // namespace renzan
