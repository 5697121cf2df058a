#include "renzan/optim/sparse_optimizers.h"

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Sparse = SparseOptimizerType;

constexpr SparseOptimizerInfo kSparseOptimizers[] = {
    {Sparse::kSgd, "sgd", "", 0, 0},
    {Sparse::kAdagrad, "adagrad", "adagrad", 1, 0},
    {Sparse::kRowWiseAdagrad, "rowwise_adagrad", "rowwise_adagrad", 0, 1},
};

}  // namespace

std::span<const SparseOptimizerInfo> SparseOptimizers() { return kSparseOptimizers; }

const SparseOptimizerInfo& InfoOf(SparseOptimizerType type) {
  const SparseOptimizerInfo& info = kSparseOptimizers[static_cast<size_t>(type)];
  CHECK(info.type == type);
  return info;
}

std::vector<std::string> SparseOptimizerNames() {
  std::vector<std::string> names;
  for (const SparseOptimizerInfo& info : kSparseOptimizers) names.push_back(info.name);
  return names;
}

}  // namespace renzan
