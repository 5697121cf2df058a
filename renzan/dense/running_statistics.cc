#include "renzan/dense/running_statistics.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {

RunningStatistics::RunningStatistics(const ParameterLayout& layout, int num_virtual_workers)
    : virtual_workers_(num_virtual_workers), next_(static_cast<size_t>(layout.statistics_size())) {
  for (const Parameter& parameter : layout.parameters())
    if (parameter.is_statistic()) statistics_.push_back(parameter);
}

void RunningStatistics::Compute(std::span<const float> sums, std::span<const float> parameters) {
  CHECK(sums.size() == next_.size());
  for (const Parameter& each : statistics_) {
    const float* const sum = sums.data() + each.statistic;
    const float* const running = parameters.data() + each.offset;
    float* const next = next_.data() + each.statistic;
    for (int64_t i = 0; i < each.size; ++i)
      next[i] = static_cast<float>((1 - each.momentum) * double{running[i]} +
                                   each.momentum * (double{sum[i]} / virtual_workers_));
  }
}

void RunningStatistics::Write(std::span<float> parameters) const {
  for (const Parameter& each : statistics_)
    std::copy_n(next_.data() + each.statistic, each.size, parameters.data() + each.offset);
}

}  // namespace renzan
