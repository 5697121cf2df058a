#pragma once

// The gradients of the dense parameters: what the virtual workers of this process leave behind, and
// their sum over all virtual workers of all processes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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
  int num_virtual_workers = 1;  // of all processes
  int64_t samples = 1;          // of a virtual worker
  Precision precision = Precision::kFloat32;
  FloatType wire = FloatType::kFloat32;  // rounds every node of the tree
  bool may_defer = true;                 // see Defers; else there are leaves()
};

DenseGradientOptions DenseGradientOptionsOf(const Numerics& numerics);

class DenseGradients {
 public:
  // Whether a process keeps the operands of the gradients (DeferredGradients) instead of its
  // virtual workers' gradients. The sum has the same bits.
  static bool Defers(const ParameterLayout& layout, const DenseGradientOptions& options);
  // Bytes that a process with so many of the virtual workers needs.
  static int64_t BytesOf(const ParameterLayout& layout, const DenseGradientOptions& options,
                         int virtual_workers);

  DenseGradients(Communicator& comm, ThreadPool& pool, const ParameterLayout& layout,
                 const DenseGradientOptions& options);

  // Where a virtual worker, counted within this process, leaves its gradients; threads may use
  // different ones at the same time.
  WeightGradients& of(size_t index);
  // The same as flat arrays, unless they are deferred.
  std::span<const std::span<float>> leaves() const { return leaf_spans_; }

  // The reduction, which every process calls in turn; it may do something else in between. `sum`
  // [layout.size()] must stay until Finish() returns.
  void Start(std::span<float> sum);
  void Continue() { reducer_.Continue(); }
  void Finish() { reducer_.Finish(); }

 private:
  ThreadPool& pool_;
  TreeReducer reducer_;
  // One of these.
  std::vector<AlignedBuffer> leaves_;
  std::optional<DeferredGradients> deferred_;

  std::vector<std::span<float>> leaf_spans_;
  std::vector<FlatGradients> flat_;
  // Of the subtrees that this process reduces on its own: sizes, and sums if they are not all.
  std::vector<int> sizes_;
  std::vector<AlignedBuffer> sums_;
  std::vector<float*> sum_pointers_;
  std::vector<const std::byte*> blocks_;
};

}  // namespace renzan
