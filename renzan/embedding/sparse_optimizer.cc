#include "renzan/embedding/sparse_optimizer.h"

#include <vector>

#include "renzan/base/finite.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/table.h"

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

bool ApplySparse(const SparseOptimizerOptions& options, double learning_rate,
                 std::span<const Lookup> lookups, const float* pooled_gradients,
                 EmbeddingTable* table) {
  const int64_t dim = table->spec.embedding_dim;
  const float lr = static_cast<float>(learning_rate);
  const float epsilon = static_cast<float>(options.epsilon);
  constexpr size_t kPrefetch = 8;
  const int64_t state_floats = StateFloatsPerRow(options.type, dim);
  std::vector<float> sum(static_cast<size_t>(dim));
  bool finite = true;
  for (size_t begin = 0, end; begin < lookups.size(); begin = end) {
    if (begin + kPrefetch < lookups.size()) {
      const float* ahead = table->weights.data() + int64_t{RowOf(lookups[begin + kPrefetch])} * dim;
      for (int64_t d = 0; d < dim; d += 16) __builtin_prefetch(ahead + d, 1);
    }
    const int64_t row = RowOf(lookups[begin]);
    const float* gradient = pooled_gradients + int64_t{SampleOf(lookups[begin])} * dim;
    for (end = begin + 1; end < lookups.size() && RowOf(lookups[end]) == row; ++end) {
      if (end == begin + 1) {
        sum.assign(gradient, gradient + dim);
        gradient = sum.data();
      }
      AddRow(pooled_gradients + int64_t{SampleOf(lookups[end])} * dim, dim, sum.data());
    }
    table->BeforeUpdate(row);
    float* weights = table->weights.data() + row * dim;
    switch (options.type) {
      case SparseOptimizerType::kSgd:
        SgdRow(lr, gradient, dim, weights);
        break;
      case SparseOptimizerType::kAdagrad:
        AdagradRow(lr, epsilon, gradient, dim, table->state.data() + row * dim, weights);
        break;
      case SparseOptimizerType::kRowWiseAdagrad:
        RowWiseAdagradRow(lr, epsilon, gradient, dim, table->state.data() + row, weights);
        break;
    }
    finite &=
        AllFinite({weights, static_cast<size_t>(dim)}) &&
        AllFinite({table->state.data() + row * state_floats, static_cast<size_t>(state_floats)});
  }
  return finite;
}

}  // namespace renzan
