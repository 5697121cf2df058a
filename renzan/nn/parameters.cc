#include "renzan/nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

constexpr int64_t kAlignment = 16;

double StandardDeviation(const Parameter& parameter) {
  switch (parameter.initializer) {
    case Initializer::kXavierNormal:
      return std::sqrt(2.0 / static_cast<double>(parameter.shape[0] + parameter.shape[1]));
    case Initializer::kBiasNormal:
      return std::sqrt(1.0 / static_cast<double>(parameter.size));
    case Initializer::kNormal:
      return std::sqrt(parameter.variance);
    case Initializer::kZero:
    case Initializer::kOne:
    case Initializer::kQuarter:
      return 0;
  }
  return 0;
}

}  // namespace

int64_t ParameterLayout::Add(std::string name, std::vector<int64_t> shape, Initializer initializer,
                             int64_t rows_per_sample) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  parameters_.push_back({.name = std::move(name),
                         .shape = std::move(shape),
                         .offset = size_,
                         .size = size,
                         .initializer = initializer,
                         .variance = 0,
                         .block = {},
                         .rows_per_sample = rows_per_sample * rows_factor_});
  size_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  return parameters_.back().offset;
}

int64_t ParameterLayout::AddNormal(std::string name, std::vector<int64_t> shape, double variance) {
  const int64_t offset = Add(std::move(name), std::move(shape), Initializer::kNormal);
  parameters_.back().variance = variance;
  return offset;
}

StatisticPlace ParameterLayout::AddStatistic(std::string name, int64_t size,
                                             Initializer initializer, double momentum) {
  const int64_t running = Add(std::move(name), {size}, initializer);
  parameters_.back().momentum = momentum;
  parameters_.back().statistic = statistics_size_;
  statistics_size_ += size;
  return {.running = running, .observed = parameters_.back().statistic};
}

void ParameterLayout::SetBlock(size_t first, const std::string& block) {
  for (size_t i = first; i < parameters_.size(); ++i) parameters_[i].block = block;
}

void ParameterLayout::Initialize(uint64_t seed, std::span<float> values) const {
  CHECK(static_cast<int64_t>(values.size()) == size_);
  std::fill(values.begin(), values.end(), 0.0f);
  for (const Parameter& parameter : parameters_) {
    if (parameter.initializer == Initializer::kOne)
      std::fill_n(values.begin() + parameter.offset, parameter.size, 1.0f);
    if (parameter.initializer == Initializer::kQuarter)
      std::fill_n(values.begin() + parameter.offset, parameter.size, 0.25f);
    const double sigma = StandardDeviation(parameter);
    if (sigma == 0) continue;
    const uint64_t key = PhiloxKey(seed, ("init/" + parameter.name).c_str());
    for (int64_t i = 0; i < parameter.size; i += 2) {
      const Philox::Block block = Philox::Draw(key, static_cast<uint64_t>(i / 2));
      float* out = values.data() + parameter.offset + i;
      out[0] = static_cast<float>(sigma * Philox::Normal(block[0], block[1]));
      if (i + 1 < parameter.size)
        out[1] = static_cast<float>(sigma * Philox::Normal(block[2], block[3]));
    }
  }
}

}  // namespace renzan
