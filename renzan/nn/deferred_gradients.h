#pragma once

// The gradients of all virtual workers of a process, computed together once each has left its
// operands: no virtual worker's gradient is ever written to memory, which would take longer than
// AMX's products. The sums have the same bits as those of FlatGradients added by a balanced binary
// tree.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/nn/gradient_tiles.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"

namespace renzan {

class DeferredGradients {
 public:
  // Bytes of the operands of one virtual worker with n samples.
  static int64_t BytesOf(const ParameterLayout& layout, int64_t n);
  // Whether deferring takes less time in the selected instruction-set class, and little more memory
  // than the gradients would.
  static bool PayOff(const ParameterLayout& layout, Precision precision, int64_t n);

  DeferredGradients(const ParameterLayout& layout, int virtual_workers, int64_t n);
  ~DeferredGradients();

  // What a virtual worker's backward pass adds to. Threads may use different ones at the same time.
  WeightGradients& of(size_t virtual_worker);

  // sums[i] [layout.size()] becomes the sum over the next sizes[i] virtual workers; each size is a
  // power of two.
  void Sum(ThreadPool& pool, std::span<const int> sizes, std::span<float* const> sums);

 private:
  struct Weight {
    int64_t offset, out, in, rows_per_sample;
  };
  class Leaf;
  // A block of one weight's gradient.
  struct Task {
    size_t weight;
    GradientBlock part;
  };
  void SumTask(const Task& task, size_t first_leaf, size_t num_leaves, float* sum) const;
  void SumVectors(size_t first_leaf, size_t num_leaves, float* sum) const;

  std::vector<Weight> weights_;
  std::map<int64_t, size_t> by_offset_;
  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::vector<Task> tasks_;
};

}  // namespace renzan
