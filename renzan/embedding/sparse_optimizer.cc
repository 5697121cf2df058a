#include "renzan/embedding/sparse_optimizer.h"

#include <vector>

#include "renzan/base/finite.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/table.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/optim/optimizer_steps.h"

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

namespace {

// Calls visit(row, its summed gradient [dim]) for every row of `lookups`. Rows of `prefetch` are
// prefetched.
template <class Visit>
void ForEachRow(std::span<const Lookup> lookups, const float* pooled_gradients, int64_t dim,
                const EmbeddingTable* prefetch, const Visit& visit) {
  constexpr size_t kPrefetch = 8;
  thread_local std::vector<float> sum;
  for (size_t begin = 0, end; begin < lookups.size(); begin = end) {
    if (prefetch != nullptr && begin + kPrefetch < lookups.size()) {
      const float* ahead =
          prefetch->weights.data() + int64_t{RowOf(lookups[begin + kPrefetch])} * dim;
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
    visit(row, gradient);
  }
}

}  // namespace

bool ApplySparse(const SparseOptimizerOptions& options, double learning_rate, float gradient_scale,
                 std::span<const Lookup> lookups, const float* pooled_gradients,
                 EmbeddingTable* table) {
  const int64_t dim = table->spec.embedding_dim;
  const float lr = static_cast<float>(learning_rate);
  const float epsilon = static_cast<float>(options.epsilon);
  const float decay = static_cast<float>(options.weight_decay);
  const float kept = static_cast<float>(1 - learning_rate * options.weight_decay);
  const bool l2 = decay != 0 && options.weight_decay_mode == WeightDecayMode::kL2;
  const bool decoupled = decay != 0 && options.weight_decay_mode == WeightDecayMode::kDecoupled;
  const int64_t state_floats = StateFloatsPerRow(options.type, dim);
  thread_local std::vector<float> changed;
  bool finite = true;
  ForEachRow(lookups, pooled_gradients, dim, table, [&](int64_t row, const float* gradient) {
    table->BeforeUpdate(row);
    float* weights = table->weights.data() + row * dim;
    if (gradient_scale != 1.0f || l2) {
      changed.assign(gradient, gradient + dim);
      if (gradient_scale != 1.0f) ScaleValues(gradient_scale, dim, changed.data());
      if (l2) AddScaled(decay, weights, dim, changed.data());
      gradient = changed.data();
    }
    if (decoupled) ScaleValues(kept, dim, weights);
    switch (options.type) {
      case SparseOptimizerType::kSgd:
        SgdStep(lr, gradient, dim, weights);
        break;
      case SparseOptimizerType::kAdagrad:
        AdagradStep(lr, epsilon, gradient, dim, table->state.data() + row * dim, weights);
        break;
      case SparseOptimizerType::kRowWiseAdagrad:
        RowWiseAdagradStep(lr, epsilon, gradient, dim, table->state.data() + row, weights);
        break;
    }
    finite &=
        AllFinite({weights, static_cast<size_t>(dim)}) &&
        AllFinite({table->state.data() + row * state_floats, static_cast<size_t>(state_floats)});
  });
  return finite;
}

double SquaredGradientNorm(std::span<const Lookup> lookups, const float* pooled_gradients,
                           int64_t dim) {
  thread_local std::vector<double> rows;
  rows.clear();
  ForEachRow(lookups, pooled_gradients, dim, nullptr,
             [&](int64_t, const float* gradient) { rows.push_back(SumOfSquares(gradient, dim)); });
  return TreeSum(rows);
}

}  // namespace renzan
