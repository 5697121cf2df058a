#include "renzan/optim/dense_optimizer.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"

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
    : options_(options), groups_{{.end = size}}, factors_(1) {
  for (const char* name : InfoOf(options.type).states)
    states_.push_back({name, AlignedBuffer(size)});
  if (options.type == Dense::kAdagrad)
    std::fill_n(states_[0].values.data(), size, static_cast<float>(options.initial_accumulator));
}

void DenseOptimizer::set_groups(std::vector<ParameterGroup> groups) {
  CHECK(!groups.empty() && groups.back().end == groups_.back().end);
  groups_ = std::move(groups);
  factors_.resize(groups_.size());
}

void DenseOptimizer::ClearFrozen(std::span<float> gradient) const {
  size_t begin = 0;
  for (const ParameterGroup& group : groups_) {
    if (group.frozen) std::ranges::fill(gradient.subspan(begin, group.end - begin), 0.0f);
    begin = group.end;
  }
}

void DenseOptimizer::Apply(ThreadPool& pool, double learning_rate, int64_t step,
                           std::span<const float> gradient, std::span<float> parameters) {
  CHECK(gradient.size() == parameters.size() && gradient.size() == groups_.back().end);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const double rate = learning_rate * groups_[i].learning_rate_factor;
    factors_[i] = {.lr = static_cast<float>(rate),
                   .kept = static_cast<float>(1 - rate * options_.weight_decay),
                   .adam = AdamFactors(rate, options_.epsilon, options_.beta1, options_.beta2,
                                       earlier_steps_ + step)};
  }
  pool.ParallelRanges(parameters.size(), [&](int, size_t begin, size_t end) {
    for (size_t i = 0; i < groups_.size() && begin < end; ++i) {
      const size_t until = std::min(end, groups_[i].end);
      if (until <= begin) continue;
      if (!groups_[i].frozen) ApplyTo(factors_[i], gradient, begin, until, parameters);
      begin = until;
    }
  });
}

void DenseOptimizer::ApplyTo(const Factors& factors, std::span<const float> gradient, size_t begin,
                             size_t end, std::span<float> parameters) {
  const float epsilon = static_cast<float>(options_.epsilon);
  const float* g = gradient.data() + begin;
  float* w = parameters.data() + begin;
  const int64_t n = static_cast<int64_t>(end - begin);
  const auto state = [&](size_t i) { return states_[i].values.data() + begin; };
  if (options_.weight_decay != 0) ScaleValues(factors.kept, n, w);
  switch (options_.type) {
    case DenseOptimizerType::kSgd:
      SgdStep(factors.lr, g, n, w);
      break;
    case DenseOptimizerType::kAdagrad:
      AdagradStep(factors.lr, epsilon, g, n, state(0), w);
      break;
    case DenseOptimizerType::kAdam:
      AdamStep(factors.adam, g, n, state(0), state(1), w);
      break;
  }
}

}  // namespace renzan
