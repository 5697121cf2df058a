#include "renzan/optim/dense_optimizer.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan {
namespace {

using Dense = DenseOptimizerType;

constexpr const char* kAdagradStates[] = {"adagrad"};
constexpr const char* kAdamStates[] = {"adam_m", "adam_v"};

constexpr DenseOptimizerInfo kDenseOptimizers[] = {
    {Dense::kSgd, "sgd", {}},
    {Dense::kAdagrad, "adagrad", kAdagradStates},
    {Dense::kAdam, "adam", kAdamStates},
};

}  // namespace

std::span<const DenseOptimizerInfo> DenseOptimizers() { return kDenseOptimizers; }

const DenseOptimizerInfo& InfoOf(DenseOptimizerType type) {
  const DenseOptimizerInfo& info = kDenseOptimizers[static_cast<size_t>(type)];
  CHECK(info.type == type);
  return info;
}

std::vector<std::string> DenseOptimizerNames() {
  std::vector<std::string> names;
  for (const DenseOptimizerInfo& info : kDenseOptimizers) names.push_back(info.name);
  return names;
}

DenseOptimizer::DenseOptimizer(const DenseOptimizerOptions& options, size_t size)
    : options_(options) {
  for (const char* name : InfoOf(options.type).states)
    states_.push_back({name, AlignedBuffer(size)});
  if (options.type == Dense::kAdagrad)
    std::fill_n(states_[0].values.data(), size, static_cast<float>(options.initial_accumulator));
}

void DenseOptimizer::Apply(ThreadPool& pool, double learning_rate, int64_t step,
                           std::span<const float> gradient, std::span<float> parameters) {
  CHECK(gradient.size() == parameters.size());
  const float lr = static_cast<float>(learning_rate);
  const float epsilon = static_cast<float>(options_.epsilon);
  const float kept = static_cast<float>(1 - learning_rate * options_.weight_decay);
  const AdamFactors adam(learning_rate, options_.epsilon, options_.beta1, options_.beta2,
                         earlier_steps_ + step);
  pool.ParallelRanges(parameters.size(), [&](int, size_t begin, size_t end) {
    const float* g = gradient.data() + begin;
    float* w = parameters.data() + begin;
    const int64_t n = static_cast<int64_t>(end - begin);
    const auto state = [&](size_t i) { return states_[i].values.data() + begin; };
    if (options_.weight_decay != 0) ScaleValues(kept, n, w);
    switch (options_.type) {
      case DenseOptimizerType::kSgd:
        SgdStep(lr, g, n, w);
        break;
      case DenseOptimizerType::kAdagrad:
        AdagradStep(lr, epsilon, g, n, state(0), w);
        break;
      case DenseOptimizerType::kAdam:
        AdamStep(adam, g, n, state(0), state(1), w);
        break;
    }
  });
}

}  // namespace renzan
