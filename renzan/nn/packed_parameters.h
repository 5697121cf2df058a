#pragma once

// A model's parameters as its layers use them: vectors in place in the flat array, and each weight
// as the right operand of the products of the forward and of the backward pass. Packed once per
// step and read by all virtual workers. Thread-safe except for Pack().

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/right_operand.h"
#include "renzan/tensor/precision.h"

namespace renzan {

struct PackedWeight {
  RightOperand transposed;  // [in, out], for y = x · Wᵀ
  RightOperand straight;    // [out, in], for dx = dy · W
};

class PackedParameters {
 public:
  // `values` [layout.size()] must outlive this object. `precision` is that of the weights.
  PackedParameters(const ParameterLayout& layout, std::span<const float> values,
                   Precision precision = Precision::kFloat32);

  // Must be called before the first use and whenever the values have changed.
  void Pack(ThreadPool& pool);

  // By offset in the flat array.
  const float* vector(int64_t offset) const { return values_.data() + offset; }
  const PackedWeight& weight(int64_t offset) const { return weights_.at(offset); }

 private:
  // What is packed at once: some rows of a weight, or one block of one operand.
  struct Task {
    const float* values;
    PackedWeight* weight;
    enum { kRows, kStraight, kTransposed } what;
    int64_t index;  // the first row, or the block
  };
  std::span<const float> values_;
  std::map<int64_t, PackedWeight> weights_;
  std::vector<Task> tasks_;
};

}  // namespace renzan
