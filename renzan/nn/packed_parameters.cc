#include "renzan/nn/packed_parameters.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr int64_t kBlock = BlockedMatrix::kBlock;

// One block of columns of `to`, from the row-major values of the same matrix.
void PackBlock(const float* values, int64_t block, BlockedMatrix* to) {
  const int64_t begin = block * kBlock, n = std::min(kBlock, to->columns() - begin);
  float* out = to->block(block);
  for (int64_t r = 0; r < to->rows(); ++r)
    std::copy_n(values + r * to->columns() + begin, n, out + r * kBlock);
}

// The same from the row-major values of the transposed matrix: 16 x 16 at a time, so that the lines
// of both sides stay in the L1 cache.
void PackTransposedBlock(const float* values, int64_t block, BlockedMatrix* to) {
  const int64_t rows = to->rows(), begin = block * kBlock;
  const int64_t n = std::min(kBlock, to->columns() - begin);
  float* out = to->block(block);
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const float* from = values + begin * rows + r0;
    const int64_t count = std::min(kBlock, rows - r0);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < n; ++c) out[(r0 + r) * kBlock + c] = from[c * rows + r];
  }
}

}  // namespace

PackedParameters::PackedParameters(const ParameterLayout& layout, std::span<const float> values)
    : values_(values) {
  CHECK(static_cast<int64_t>(values.size()) == layout.size());
  for (const Parameter& parameter : layout.parameters()) {
    if (parameter.shape.size() != 2) continue;
    const int64_t out = parameter.shape[0], in = parameter.shape[1];
    PackedWeight& weight =
        weights_.emplace(parameter.offset, PackedWeight{{in, out}, {out, in}}).first->second;
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
    (task.transposed ? PackTransposedBlock : PackBlock)(task.values, task.block, task.matrix);
  });
}

}  // namespace renzan
