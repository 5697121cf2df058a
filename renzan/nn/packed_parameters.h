#pragma once

// The parameters of a model as its layers use them: vectors in place in the flat array, and each
// weight in blocks for the products of the forward and of the backward pass. Packed once per step
// and read by all virtual workers. Thread-safe except for Pack().

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "renzan/base/blocked_matrix.h"
#include "renzan/base/thread_pool.h"
#include "renzan/nn/parameters.h"

namespace renzan {

struct PackedWeight {
  BlockedMatrix transposed;  // [in, out], for y = x · Wᵀ
  BlockedMatrix straight;    // [out, in], for dx = dy · W
};

class PackedParameters {
 public:
  // `values` [layout.size()] must outlive this object.
  PackedParameters(const ParameterLayout& layout, std::span<const float> values);

  // Must be called before the first use and whenever the values have changed.
  void Pack(ThreadPool& pool);

  // By offset in the flat array.
  const float* vector(int64_t offset) const { return values_.data() + offset; }
  const PackedWeight& weight(int64_t offset) const { return weights_.at(offset); }

 private:
  // One block of one matrix.
  struct Task {
    const float* values;
    BlockedMatrix* matrix;
    int64_t block;
    bool transposed;
  };
  std::span<const float> values_;
  std::map<int64_t, PackedWeight> weights_;
  std::vector<Task> tasks_;
};

}  // namespace renzan
