#pragma once

// What normalizes the columns of a matrix within a block: batch_norm.h, layer_norm.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

class Normalization {
 public:
  virtual ~Normalization() = default;

  virtual void Forward(const BlockPass& pass, const BlockedMatrix& x, BlockedMatrix* y) const = 0;
  // After Forward: from the gradient of y to that of x, which may be the same matrix, or null.
  virtual void Backward(const BlockPass& pass, const BlockedMatrix& x, const BlockedMatrix& dy,
                        WeightGradients* gradients, BlockedMatrix* dx) const = 0;
};

// A block that normalizes its input and gives the same vectors: those of `sequence`, if each is
// normalized by itself.
std::unique_ptr<Block> MakeNormalizationBlock(const BlockPlace& place,
                                              std::unique_ptr<Normalization> normalization,
                                              std::optional<SequenceId> sequence = std::nullopt);

const std::vector<std::string>& NormalizationNames();

// Of a layer with this many units; its parameters' names begin with `prefix`. Null for "none".
std::unique_ptr<Normalization> MakeNormalization(const std::string& name, const BlockPlace& place,
                                                 const std::string& prefix, int64_t units);

}  // namespace renzan
