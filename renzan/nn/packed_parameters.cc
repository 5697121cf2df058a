#include "renzan/nn/packed_parameters.h"

#include "renzan/base/error.h"

namespace renzan {

PackedParameters::PackedParameters(const ParameterLayout& layout, std::span<const float> values,
                                   Precision precision)
    : values_(values) {
  CHECK(static_cast<int64_t>(values.size()) == layout.size());
  for (const Parameter& parameter : layout.parameters()) {
    if (parameter.shape.size() != 2) continue;
    const int64_t out = parameter.shape[0], in = parameter.shape[1];
    PackedWeight& weight =
        weights_
            .emplace(parameter.offset, PackedWeight{.transposed = {in, out, precision},
                                                    .straight = {out, in, precision}})
            .first->second;
    const float* stored = values_.data() + parameter.offset;
    for (int64_t block = 0; block < weight.transposed.num_blocks(); ++block)
      tasks_.push_back({stored, &weight.transposed, block, true});
    for (int64_t block = 0; block < weight.straight.num_blocks(); ++block)
      tasks_.push_back({stored, &weight.straight, block, false});
  }
}

void PackedParameters::Pack(ThreadPool& pool) {
  pool.ParallelTasks(tasks_.size(), [&](int, size_t i) {
    const Task& task = tasks_[i];
    if (task.transposed) {
      task.operand->SetBlockOfTransposed(task.block, task.values);
    } else {
      task.operand->SetBlock(task.block, task.values);
    }
  });
}

}  // namespace renzan
