#include "renzan/nn/deferred_gradients.h"

#include <algorithm>
#include <array>

#include "renzan/base/error.h"
#include "renzan/nn/isa.h"

namespace renzan {
namespace {

// With more samples, writing a gradient takes little time compared with computing it. Measured:
// deferring pays off with 256 samples, not with 512.
constexpr int64_t kMostSamples = 384;

// Rows of a task: enough that loading its columns of the right operands does not matter.
constexpr int64_t kTaskRows = 1024;

// The sum of value(leaf) over the leaves from `first` on, by a balanced binary tree.
template <typename Value>
float TreeSum(size_t first, size_t leaves, const Value& value) {
  if (leaves == 1) return value(first);
  const size_t half = leaves / 2;
  return TreeSum(first, half, value) + TreeSum(first + half, half, value);
}

}  // namespace

class DeferredGradients::Leaf final : public WeightGradients {
 public:
  Leaf(const DeferredGradients& all, int64_t n)
      : all_(all), operands_(all.weights_.size()), biases_(all.weights_.size()) {
    for (size_t i = 0; i < operands_.size(); ++i)
      operands_[i].Reserve(n * all.weights_[i].rows_per_sample, all.weights_[i].out,
                           all.weights_[i].in);
  }
  void Add(const BlockedMatrix& dy, const BlockedMatrix& x, int64_t weight,
           std::optional<int64_t> bias) override {
    const size_t index = all_.by_offset_.at(weight);
    operands_[index].Set(dy, x, bias.has_value());
    biases_[index] = bias;
  }
  void AddVector(const BlockedMatrix& d, int64_t vector) override {
    AlignedBuffer& sums = vectors_[vector];
    if (sums.size() == 0) sums = AlignedBuffer(static_cast<size_t>(d.columns()));
    ColumnSums(d, sums.data());
  }
  const GradientOperands& operands(size_t weight) const { return operands_[weight]; }
  std::optional<int64_t> bias(size_t weight) const { return biases_[weight]; }
  const std::map<int64_t, AlignedBuffer>& vectors() const { return vectors_; }

 private:
  const DeferredGradients& all_;
  std::vector<GradientOperands> operands_;
  std::vector<std::optional<int64_t>> biases_;
  std::map<int64_t, AlignedBuffer> vectors_;  // sums, by offset
};

int64_t DeferredGradients::BytesOf(const ParameterLayout& layout, int64_t n) {
  int64_t values = 0;
  for (const Parameter& parameter : layout.parameters())
    if (parameter.shape.size() == 2)
      values += n * parameter.rows_per_sample * (parameter.shape[0] + parameter.shape[1]);
  return values * 2;
}

bool DeferredGradients::PayOff(const ParameterLayout& layout, Precision precision, int64_t n) {
  return precision == Precision::kBFloat16 && BFloat16ProductsOfIsa() == BFloat16Products::kTiles &&
         n <= kMostSamples &&
         BytesOf(layout, n) <= 2 * layout.size() * static_cast<int64_t>(sizeof(float));
}

DeferredGradients::DeferredGradients(const ParameterLayout& layout, int virtual_workers,
                                     int64_t n) {
  for (const Parameter& parameter : layout.parameters()) {
    if (parameter.shape.size() != 2) continue;
    const int64_t cached = CachedGradientBlocks(virtual_workers, n * parameter.rows_per_sample);
    const int64_t out = parameter.shape[0], in = parameter.shape[1];
    const int64_t blocks = (in + BlockedMatrix::kLanes - 1) / BlockedMatrix::kLanes;
    for (int64_t block = 0; block < blocks; block += cached)
      for (int64_t row = 0; row < out; row += kTaskRows)
        tasks_.push_back({weights_.size(),
                          {.row = row,
                           .rows = std::min(kTaskRows, out - row),
                           .block = block,
                           .blocks = std::min(cached, blocks - block)}});
    by_offset_.emplace(parameter.offset, weights_.size());
    weights_.push_back({parameter.offset, out, in, parameter.rows_per_sample});
  }
  // The largest first, so that threads finish at about the same time.
  std::stable_sort(tasks_.begin(), tasks_.end(), [](const Task& x, const Task& y) {
    return x.part.rows * x.part.blocks > y.part.rows * y.part.blocks;
  });
  for (int i = 0; i < virtual_workers; ++i) leaves_.push_back(std::make_unique<Leaf>(*this, n));
}

DeferredGradients::~DeferredGradients() = default;

WeightGradients& DeferredGradients::of(size_t virtual_worker) { return *leaves_[virtual_worker]; }

void DeferredGradients::SumTask(const Task& task, size_t first_leaf, size_t num_leaves,
                                float* sum) const {
  const Weight& weight = weights_[task.weight];
  constexpr size_t kMost = 64;  // more than this are on the heap
  std::array<const GradientOperands*, kMost> few;
  std::vector<const GradientOperands*> many(num_leaves > kMost ? num_leaves : 0);
  const std::span<const GradientOperands*> operands =
      num_leaves > kMost ? std::span(many) : std::span(few).first(num_leaves);
  for (size_t i = 0; i < num_leaves; ++i)
    operands[i] = &leaves_[first_leaf + i]->operands(task.weight);
  SumOfTransposedGemms(operands, task.part, sum + weight.offset);
  const std::optional<int64_t> bias = leaves_[first_leaf]->bias(task.weight);
  if (!bias || task.part.block != 0) return;
  for (int64_t i = task.part.row; i < task.part.row + task.part.rows; ++i)
    sum[*bias + i] = TreeSum(
        0, num_leaves, [&](size_t leaf) { return operands[leaf]->sums[static_cast<size_t>(i)]; });
}

void DeferredGradients::SumVectors(size_t first_leaf, size_t num_leaves, float* sum) const {
  for (const auto& [offset, own] : leaves_[first_leaf]->vectors())
    for (size_t i = 0; i < own.size(); ++i)
      sum[offset + static_cast<int64_t>(i)] = TreeSum(
          first_leaf, num_leaves,
          [&, offset = offset](size_t leaf) { return leaves_[leaf]->vectors().at(offset)[i]; });
}

void DeferredGradients::Sum(ThreadPool& pool, std::span<const int> sizes,
                            std::span<float* const> sums) {
  CHECK(sizes.size() == sums.size());
  size_t first_leaf = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t size = static_cast<size_t>(sizes[i]);
    pool.ParallelTasks(tasks_.size(),
                       [&](int, size_t task) { SumTask(tasks_[task], first_leaf, size, sums[i]); });
    SumVectors(first_leaf, size, sums[i]);
    first_leaf += size;
  }
  CHECK(first_leaf == leaves_.size());
}

}  // namespace renzan
