#include "renzan/dense/dense_gradients.h"

#include <cstddef>

#include "renzan/comm/tree_blocks.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {

DenseGradientOptions DenseGradientOptionsOf(const Numerics& numerics) {
  return {.num_virtual_workers = numerics.virtual_workers,
          .samples = numerics.samples(),
          .precision = numerics.precision,
          .wire = numerics.dense_wire,
          .may_defer = !numerics.on_gpu};
}

bool DenseGradients::Defers(const ParameterLayout& layout, const DenseGradientOptions& options) {
  return options.may_defer && options.wire == FloatType::kFloat32 &&
         DeferredGradients::PayOff(layout, options.precision, options.samples);
}

int64_t DenseGradients::BytesOf(const ParameterLayout& layout, const DenseGradientOptions& options,
                                int virtual_workers) {
  const int64_t gradient = AlignedBuffer::MemoryFor(layout.size() * int64_t{sizeof(float)});
  const int64_t statistics =
      (virtual_workers + 1) *
      AlignedBuffer::MemoryFor(layout.statistics_size() * int64_t{sizeof(float)});
  if (!Defers(layout, options)) return virtual_workers * gradient + statistics;
  const bool all = virtual_workers == options.num_virtual_workers;
  const IndexRange range = {0, virtual_workers};
  const int64_t subtrees = std::ssize(MaximalBlocks(range));
  return virtual_workers * DeferredGradients::BytesOf(layout, options.samples) +
         (all && subtrees == 1 ? 0 : subtrees * gradient) + statistics;
}

DenseGradients::DenseGradients(Communicator& comm, ThreadPool& pool, const ParameterLayout& layout,
                               const DenseGradientOptions& options)
    : pool_(pool),
      reducer_(comm, pool, options.num_virtual_workers, static_cast<size_t>(layout.size()),
               options.wire) {
  const IndexRange own =
      VirtualWorkerRange(options.num_virtual_workers, comm.world_size(), comm.rank());
  const size_t size = static_cast<size_t>(layout.size());
  if (!Defers(layout, options)) {
    for (int v = own.begin; v < own.end; ++v) {
      leaf_spans_.push_back(leaves_.emplace_back(size).span());
      flat_.emplace_back(leaves_.back().data());
    }
  } else {
    deferred_.emplace(layout, own.size(), options.samples);
    for (const TreeBlock& block : MaximalBlocks(own)) sizes_.push_back(block.size);
    sum_pointers_.resize(sizes_.size());
    // A single subtree's sum is the result.
    if (sizes_.size() > 1 || comm.world_size() > 1)
      for (float*& sum : sum_pointers_) sum = sums_.emplace_back(size).data();
  }
  if (layout.statistics_size() > 0) ReduceStatistics(comm, layout, options, own);
}

void DenseGradients::ReduceStatistics(Communicator& comm, const ParameterLayout& layout,
                                      const DenseGradientOptions& options, const IndexRange& own) {
  const size_t size = static_cast<size_t>(layout.statistics_size());
  statistics_reducer_.emplace(comm, pool_, options.num_virtual_workers, size, FloatType::kFloat32,
                              "batch statistics");
  statistics_sum_ = AlignedBuffer(size);
  for (int v = own.begin; v < own.end; ++v) {
    statistics_spans_.push_back(statistics_.emplace_back(size).span());
    of(static_cast<size_t>(v - own.begin)).set_statistics(statistics_.back().data());
  }
}

WeightGradients& DenseGradients::of(size_t index) {
  if (deferred_) return deferred_->of(index);
  return flat_[index];
}

void DenseGradients::Start(std::span<float> sum) {
  if (statistics_reducer_) statistics_reducer_->Start(statistics_spans_, statistics_sum_.span());
  if (!deferred_) return reducer_.Start(leaf_spans_, sum);
  if (sums_.empty()) sum_pointers_[0] = sum.data();
  deferred_->Sum(pool_, sizes_, sum_pointers_);
  blocks_.clear();
  for (const float* block : sum_pointers_)
    blocks_.push_back(reinterpret_cast<const std::byte*>(block));
  reducer_.StartBlocks(blocks_, reinterpret_cast<std::byte*>(sum.data()));
}

void DenseGradients::Continue() {
  if (statistics_reducer_) statistics_reducer_->Continue();
  reducer_.Continue();
}

void DenseGradients::Finish() {
  if (statistics_reducer_) statistics_reducer_->Finish();
  reducer_.Finish();
}

}  // namespace renzan
