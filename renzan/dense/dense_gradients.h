#pragma once

// The gradients of the dense parameters: what the virtual workers of this process leave behind, and
// their sum over all virtual workers of all processes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/nn/deferred_gradients.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {

struct DenseGradientOptions {
  int num_virtual_workers = 1;  // over all processes
  int64_t samples = 1;          // per virtual worker
  Precision precision = Precision::kFloat32;
  FloatType wire = FloatType::kFloat32;  // every node of the tree is rounded to it
  bool may_defer = true;                 // see Defers(); otherwise there are leaves()
};

DenseGradientOptions DenseGradientOptionsOf(const Numerics& numerics);

class DenseGradients {
 public:
  // Whether processes keep the operands of the gradients (DeferredGradients) instead of their
  // virtual workers' gradients. The sum has the same bits.
  static bool Defers(const ParameterLayout& layout, const DenseGradientOptions& options);
  // Bytes that a process with this many of the virtual workers needs.
  static int64_t BytesOf(const ParameterLayout& layout, const DenseGradientOptions& options,
                         int virtual_workers);

  DenseGradients(Communicator& comm, ThreadPool& pool, const ParameterLayout& layout,
                 const DenseGradientOptions& options);

  // Where a virtual worker, counted within this process, leaves its gradients. Threads may use
  // different ones at the same time.
  WeightGradients& of(size_t index);
  // The virtual workers' gradients as flat arrays, unless they are deferred.
  std::span<const std::span<float>> leaves() const { return leaf_spans_; }

  // The reduction. Every process calls these functions in turn and may do other work in between.
  // `sum` [layout.size()] must stay alive until Finish() returns.
  void Start(std::span<float> sum);
  void Continue();
  void Finish();
  // After Finish(): the sums over all virtual workers of what each observed for the running
  // statistics, [layout.statistics_size()].
  std::span<const float> statistics() const { return statistics_sum_.span(); }

 private:
  void ReduceStatistics(Communicator& comm, const ParameterLayout& layout,
                        const DenseGradientOptions& options, const IndexRange& own);

  ThreadPool& pool_;
  TreeReducer reducer_;
  // Only one of these is used.
  std::vector<AlignedBuffer> leaves_;
  std::optional<DeferredGradients> deferred_;

  std::vector<std::span<float>> leaf_spans_;
  std::vector<FlatGradients> flat_;
  // Of running statistics, which are float32 on the wire whatever the gradients are: the variance
  // of a column may be too large or too small for 16 bits.
  std::optional<TreeReducer> statistics_reducer_;
  std::vector<AlignedBuffer> statistics_;
  std::vector<std::span<float>> statistics_spans_;
  AlignedBuffer statistics_sum_;
  // The subtrees that this process reduces by itself: their sizes, and their sums, unless a single
  // subtree is the whole tree.
  std::vector<int> sizes_;
  std::vector<AlignedBuffer> sums_;
  std::vector<float*> sum_pointers_;
  std::vector<const std::byte*> blocks_;
};

}  // namespace renzan
