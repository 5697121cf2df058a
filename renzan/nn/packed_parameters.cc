#include "renzan/nn/packed_parameters.h"

#include "renzan/base/error.h"
#include "renzan/nn/pack_pairs.h"

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
    if (weight.straight.in_pairs()) {
      for (int64_t row = 0; row < out; row += kPackedRows)
        tasks_.push_back({stored, &weight, Task::kRows, row});
      continue;
    }
    for (int64_t block = 0; block < weight.transposed.num_blocks(); ++block)
      tasks_.push_back({stored, &weight, Task::kTransposed, block});
    for (int64_t block = 0; block < weight.straight.num_blocks(); ++block)
      tasks_.push_back({stored, &weight, Task::kStraight, block});
  }
}

void PackedParameters::Pack(ThreadPool& pool) {
  pool.ParallelTasks(tasks_.size(), [&](int, size_t i) {
    const Task& task = tasks_[i];
    switch (task.what) {
      case Task::kRows:
        return PackPairs(task.values, task.index, &task.weight->straight, &task.weight->transposed);
      case Task::kTransposed:
        return task.weight->transposed.SetBlockOfTransposed(task.index, task.values);
      case Task::kStraight:
        return task.weight->straight.SetBlock(task.index, task.values);
    }
  });
}

}  // namespace renzan
